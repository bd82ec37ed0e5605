// Copies the state on the trainer's thread and writes it on another.
#include "trainer/saving/saver.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/base/seconds_since.h"
#include "trainer/comm/collective_strings.h"
#include "trainer/kernels/host_copies.h"
#include "trainer/optim/grad_clip.h"
#include "trainer/recipe/own_functions.h"
#include "trainer/rendezvous/progress.h"
#include "trainer/saving/finish_uploads.h"
#include "trainer/saving/unit_tensors.h"
#include "trainer/sharding/arena.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;

void require_finite_weights(const std::vector<OwnedRange>& ranges, const CheckpointMeta& meta) {
  std::vector<Tensor> weights;
  for (const OwnedRange& range : ranges) weights.push_back(range.weights());
  if (!std::isfinite(sum_of_squares(weights).item<double>()))
    fail(ExitCode::kNumerics,
         "[checkpoint] weights after step {} are not finite and were not saved: training has diverged.{} "
         "Resume from the last checkpoint with a lower optimizer.lr or a tighter clip.norm",
         meta.step, own_functions_advice(meta.recipe));
}

}  // namespace

Saver::Saver(std::optional<CheckpointStore> store, const CheckpointConfig& config, std::vector<int> writers,
             FileOps& files, Communicator& world, Reporter& reporter)
    : store_(std::move(store)),
      async_(config.async),
      world_(world),
      reporter_(reporter),
      shards_(std::move(writers), config.state == CheckpointState::kFull, files, world),
      retries_(config.max_lost.value, world, reporter) {}

Saver::~Saver() {
  const InPhase phase("saving a checkpoint");
  shards_.give_up(Error("[checkpoint] the run ended before all ranks had written", ExitCode::kStorage));
  writer_.join();
}

void Saver::save(CheckpointMeta meta, const std::vector<OwnedRange>& ranges, Optimizer& optimizer,
                 WeightAverage* average) {
  std::vector<std::string> tags = std::exchange(requested_, {});
  for (std::string& tag : retries_.start())
    if (!tag.empty()) tags.push_back(std::move(tag));
  std::sort(tags.begin(), tags.end());
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
  if (tags.empty()) tags.emplace_back();
  for (const std::string& tag : tags) {
    meta.tag = tag;
    save_one(meta, ranges, optimizer, average);
    is_open_ = true;
  }
}

void Saver::save_one(CheckpointMeta meta, const std::vector<OwnedRange>& ranges, Optimizer& optimizer,
                     WeightAverage* average) {
  if (!shards_.is_shared() && !store_) return;
  const InPhase phase("saving a checkpoint");
  const auto start = Clock::now();
  finish(/*last=*/false);
  step_ = meta.step;
  tag_ = meta.tag;
  retries_.took_snapshot();
  if (shards_.is_shared())
    together(world_, [&] { require_finite_weights(ranges, meta); });
  else
    require_finite_weights(ranges, meta);
  Tensors tensors = shards_.writes() ? snapshot(ranges, optimizer, average) : Tensors();
  if (shards_.is_shared() && store_) shards_.open();
  if (store_)
    writer_.start(
        async_ || shards_.is_shared(),
        [this, meta = std::move(meta), tensors = std::exchange(tensors, {})] { write(meta, tensors); });
  if (shards_.is_shared()) shards_.start_others(writer_, std::move(tensors));
  if (!async_) finish(/*last=*/false);
  pause_s_ += seconds_since(start);
}

Saver::Tensors Saver::snapshot(const std::vector<OwnedRange>& ranges, Optimizer& optimizer,
                               WeightAverage* average) {
  Tensors tensors;
  const std::vector<FlatState> state = flat_states(ranges, &optimizer, average);
  for (size_t i = 0; i < state.size(); ++i) {
    const bool copy =
        async_ || !state[i].flat.is_cpu() || state[i].flat.scalar_type() != at::kFloat || reorders(state[i]);
    if (copies_.size() == i)
      copies_.push_back(copy ? arena_view(make_arena(state[i].flat.numel() * 4, at::kCPU), 0,
                                          state[i].flat.sizes(), at::kFloat)
                             : Tensor());
    if (copy) copy_to_host(state[i].flat, copies_[i]);
    for (TensorBytes& tensor : unit_tensor_bytes(state[i], copy ? copies_[i] : state[i].flat))
      tensors.push_back(std::move(tensor));
  }
  return tensors;
}

// Runs on the writer's thread; its findings are read after the join, or after has_ended() says so.
void Saver::write(const CheckpointMeta& meta, const Tensors& tensors) {
  if (!shards_.is_shared()) {
    result_ = store_->save(meta, tensors);
    return;
  }
  try {
    result_ = store_->save(meta, shards_.estimated_bytes(tensors), [&](const std::string& folder) {
      return shards_.write_with_others(folder, tensors);
    });
  } catch (...) {
    shards_.close();
    throw;
  }
  shards_.close();
}

void Saver::wait(bool last) {
  const InPhase phase("saving a checkpoint");  // takes no time when none is in flight
  const auto start = Clock::now();
  finish(last);
  pause_s_ += seconds_since(start);
}

void Saver::finish(bool last) {
  shards_.collect(writer_, /*wait=*/true);
  writer_.join();
  if (writer_.has_ended()) settle(last);
  if (last) retries_.require_saved();
}

void Saver::poll() {
  if (writer_.has_ended() && !shards_.is_collecting()) wait(/*last=*/false);
  if (uploads_ != nullptr) report_uploads(*uploads_, reporter_);
}

void Saver::set_uploads(CheckpointUploads* uploads) {
  uploads_ = uploads;
  if (store_ && uploads != nullptr)
    store_->set_needed([uploads](const std::string& uuid) { return uploads->needs(uuid); });
}

void Saver::wait_for_uploads(const std::atomic<int>& stop, int ended_by) {
  if (uploads_ != nullptr) finish_uploads(*uploads_, world_, reporter_, stop, ended_by);
}

void Saver::settle(bool last) {
  const WriterThread::End end = writer_.take_end();
  if (const auto info = std::exchange(result_, std::nullopt)) note_saved(*info, end.seconds);
  if (!end.failure) return;
  try {
    std::rethrow_exception(end.failure);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kStorage) throw;
    retries_.failed(step_, tag_, error, last);
  }
}

void Saver::note_saved(const CheckpointInfo& info, double seconds) {
  retries_.succeeded();
  reporter_.event(
      "checkpoint",
      fmt::format("step {} saved{}, {} in {:.1f} s", step_, info.tag.empty() ? "" : " as " + info.tag,
                  human_bytes(static_cast<double>(info.num_bytes)), seconds),
      {{"step", step_}, {"path", info.path}, {"bytes", info.num_bytes}, {"seconds", seconds}});
  for (const std::string& warning : info.warnings) reporter_.event("warning", warning, {{"step", step_}});
  saved_.push_back({{"tag", info.tag},
                    {"path", info.path},
                    {"bytes", info.num_bytes},
                    {"saved_step", info.step},
                    {"seconds", seconds}});
}

Json Saver::take_saved() {
  if (!is_open_) return Json::array();
  shards_.collect(writer_, /*wait=*/false);
  std::string mine;
  if (world_.rank() == 0 && !writer_.is_in_flight()) {
    Json news = {{"saved", std::exchange(saved_, Json::array())}};
    retries_.tell(step_, news);
    mine = news.dump();
  }
  const std::string all = all_gather_strings(world_, mine).front();
  if (all.empty()) return Json::array();
  is_open_ = false;
  const Json news = parse_json(all, "checkpoint");
  retries_.read(news);
  Json saved = news.at("saved");
  for (const Json& one : saved)
    if (uploads_ != nullptr) uploads_->add(one.at("path"));
  if (!saved.empty()) {
    saved_step_ = saved.back().at("saved_step");
    saved_path_ = saved.back().at("path");
  }
  return saved;
}

}  // namespace tycho
