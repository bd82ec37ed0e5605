// Copies the state on the trainer's thread and writes it on another.
#include "trainer/loop/saver.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/kernels/host_copies.h"
#include "trainer/optim/grad_clip.h"
#include "trainer/parallel/gather_texts.h"
#include "trainer/restore/unit_tensors.h"
#include "trainer/units/arena.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int kFailuresThatStop = 3;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void require_finite_weights(const std::vector<OwnedRange>& ranges, int64_t step) {
  std::vector<Tensor> weights;
  for (const OwnedRange& range : ranges) weights.push_back(range.weights());
  if (!std::isfinite(sum_of_squares(weights).item<double>()))
    fail(ExitCode::kNumerics,
         "[checkpoint] weights at step {} are not finite and were not saved. Resume from the last checkpoint "
         "with a lower optimizer.lr or a tighter clip.norm",
         step);
}

}  // namespace

Saver::Saver(std::optional<CheckpointStore> store, bool async, Communicator& world, Reporter& reporter)
    : store_(std::move(store)), async_(async), world_(world), reporter_(reporter) {}

Saver::~Saver() {
  if (writer_.joinable()) writer_.join();
}

void Saver::save(CheckpointMeta meta, const std::vector<OwnedRange>& ranges, Optimizer& optimizer) {
  std::vector<std::string> tags = std::exchange(wanted_, {});
  std::sort(tags.begin(), tags.end());
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
  if (tags.empty()) tags.emplace_back();
  for (const std::string& tag : tags) {
    meta.tag = tag;
    save_one(meta, ranges, optimizer);
    is_open_ = true;
  }
}

void Saver::save_one(CheckpointMeta meta, const std::vector<OwnedRange>& ranges, Optimizer& optimizer) {
  if (!store_) return;
  const auto start = Clock::now();
  wait(/*last=*/false);
  require_finite_weights(ranges, meta.step);
  std::vector<TensorBytes> tensors;
  const std::vector<FlatState> state = flat_states(ranges, &optimizer);
  for (size_t i = 0; i < state.size(); ++i) {
    const bool copy = async_ || !state[i].flat.is_cpu() || state[i].flat.scalar_type() != at::kFloat;
    if (copies_.size() == i)
      copies_.push_back(copy ? arena_view(make_arena(state[i].flat.numel() * 4, at::kCPU), 0,
                                          state[i].flat.sizes(), at::kFloat)
                             : Tensor());
    if (copy) copy_to_host(state[i].flat, copies_[i]);
    for (TensorBytes& tensor : unit_tensor_bytes(state[i], copy ? copies_[i] : state[i].flat))
      tensors.push_back(std::move(tensor));
  }
  step_ = meta.step;
  if (async_) {
    writer_ =
        std::thread([this, meta = std::move(meta), tensors = std::move(tensors)] { write(meta, tensors); });
  } else {
    write(meta, tensors);
    settle(/*last=*/false);
  }
  pause_s_ += seconds_since(start);
}

// Runs on the writer's thread; what it found is read after the join, or after written_ says that it is done.
void Saver::write(const CheckpointMeta& meta, const std::vector<TensorBytes>& tensors) {
  const auto start = Clock::now();
  try {
    result_ = store_->save(meta, tensors);
  } catch (...) {
    failure_ = std::current_exception();
  }
  write_s_ = seconds_since(start);
  written_ = true;
}

void Saver::wait(bool last) {
  const auto start = Clock::now();
  if (writer_.joinable()) writer_.join();
  if (written_) settle(last);
  pause_s_ += seconds_since(start);
}

void Saver::poll() {
  if (written_) wait(/*last=*/false);
}

void Saver::settle(bool last) {
  written_ = false;
  if (result_) {
    failures_in_a_row_ = 0;
    reporter_.event(
        "checkpoint",
        fmt::format("step {} saved{}, {} in {:.1f} s", step_,
                    result_->tag.empty() ? "" : " as " + result_->tag,
                    human_bytes(static_cast<double>(result_->num_bytes)), write_s_),
        {{"step", step_}, {"path", result_->path}, {"bytes", result_->num_bytes}, {"seconds", write_s_}});
    for (const std::string& warning : result_->warnings)
      reporter_.event("warning", warning, {{"step", step_}});
    saved_ = std::exchange(result_, std::nullopt);
  }
  if (!failure_) return;
  const std::exception_ptr failure = std::exchange(failure_, nullptr);
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    ++failures_in_a_row_;
    if (last || failures_in_a_row_ >= kFailuresThatStop || error.code() != ExitCode::kStorage) throw;
    reporter_.event("error", fmt::format("step {} was not saved: {}", step_, error.what()),
                    {{"step", step_}});
  }
}

Json Saver::take_news() {
  if (!is_open_) return {};
  std::string mine;
  if (world_.rank() == 0 && !writer_.joinable()) {
    const std::optional<CheckpointInfo> saved = std::exchange(saved_, std::nullopt);
    mine = saved ? Json{{"tag", saved->tag},
                        {"path", saved->path},
                        {"bytes", saved->num_bytes},
                        {"saved_step", saved->step},
                        {"seconds", write_s_}}
                       .dump()
                 : "{}";
  }
  const std::string all = gather_texts(world_, mine).front();
  if (all.empty()) return {};
  is_open_ = false;
  Json news = parse_json(all, "checkpoint");
  if (news.empty()) return {};
  saved_step_ = news.at("saved_step");
  return news;
}

double Saver::take_pause_s() { return std::exchange(pause_s_, 0.0); }

}  // namespace tycho
