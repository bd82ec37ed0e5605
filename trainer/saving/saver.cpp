// Copies the state on the trainer's thread and writes it on another. Ranks that write together meet at
// boundaries.
#include "trainer/saving/saver.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "trainer/base/bytes.h"
#include "trainer/checkpoint/reshard.h"
#include "trainer/checkpoint/shard_json.h"
#include "trainer/comm/collective_strings.h"
#include "trainer/kernels/host_copies.h"
#include "trainer/optim/grad_clip.h"
#include "trainer/rendezvous/progress.h"
#include "trainer/saving/finish_uploads.h"
#include "trainer/saving/unit_tensors.h"
#include "trainer/sharding/arena.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLookForSignal = std::chrono::milliseconds(20);
const std::string kStopped = "stopped", kWaited = "waited";

std::string short_time(double seconds) {
  return seconds < 120 ? fmt::format("{:.3g} s", seconds) : fmt::format("{:.1f} min", seconds / 60);
}

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

Saver::Saver(std::optional<CheckpointStore> store, const CheckpointConfig& config, std::vector<int> writers,
             FileOps& files, Communicator& world, Reporter& reporter)
    : store_(std::move(store)),
      async_(config.async),
      joins_(config.state == CheckpointState::kFull),
      writers_(std::move(writers)),
      files_(files),
      world_(world),
      reporter_(reporter),
      policy_(config.max_lost.value) {}

Saver::~Saver() {
  const InPhase phase("saving a checkpoint");
  if (exchange_)
    exchange_->give_up(Error("[checkpoint] the run ended before all ranks had written", ExitCode::kStorage));
  if (writer_.joinable()) writer_.join();
}

void Saver::save(CheckpointMeta meta, const std::vector<OwnedRange>& ranges, Optimizer& optimizer,
                 WeightAverage* average) {
  retry_.step.reset();
  std::vector<std::string> tags = std::exchange(requested_, {});
  for (std::string& tag : std::exchange(retry_.tags, {}))
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
  if (!is_shared() && !store_) return;
  const InPhase phase("saving a checkpoint");
  const auto start = Clock::now();
  wait(/*last=*/false);
  step_ = meta.step;
  tag_ = meta.tag;
  policy_.took_snapshot();
  if (is_shared()) {
    together(world_, [&] { require_finite_weights(ranges, meta.step); });
    start_together(std::move(meta), writes() ? snapshot(ranges, optimizer, average) : Tensors());
    if (!async_) wait(/*last=*/false);
  } else {
    require_finite_weights(ranges, meta.step);
    Tensors tensors = snapshot(ranges, optimizer, average);
    if (async_) {
      writer_ =
          std::thread([this, meta = std::move(meta), tensors = std::move(tensors)] { write(meta, tensors); });
    } else {
      write(meta, tensors);
      settle(/*last=*/false);
    }
  }
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

// Runs on the writer's thread; what it found is read after the join, or after written_ says that it is done.
void Saver::write(const CheckpointMeta& meta, const Tensors& tensors) {
  const auto start = Clock::now();
  try {
    if (!is_shared()) {
      result_ = store_->save(meta, tensors);
    } else {
      int64_t num_bytes = 0;
      for (const TensorBytes& tensor : tensors) num_bytes += tensor.num_bytes;
      num_bytes *= (joins_ ? 2 : 1) * std::ssize(writers_);
      result_ = store_->save(meta, num_bytes, [&](const std::string& folder) {
        exchange_->open(folder);
        std::vector<WrittenShard> all = write_with_others(folder, tensors);
        if (joins_) all = {join_shards(files_, folder, std::move(all), rank_file_name(0))};
        return all;
      });
    }
  } catch (...) {
    failure_ = std::current_exception();
  }
  write_s_ = seconds_since(start);
  written_ = true;
  if (exchange_) exchange_->close();
}

// A save that fails removes its folder. Nobody may write there any more: what came later would stay, and take
// the room that the next try needs.
std::vector<WrittenShard> Saver::write_with_others(const std::string& folder, const Tensors& tensors) {
  std::vector<WrittenShard> all;
  std::exception_ptr failure;
  try {
    all.push_back(write_shard(files_, folder, shard_name(), tensors));
  } catch (...) {
    failure = std::current_exception();
  }
  try {
    for (WrittenShard& shard : exchange_->wait_for_others()) all.push_back(std::move(shard));
  } catch (...) {
    if (!failure) throw;
  }
  if (failure) std::rethrow_exception(failure);
  return all;
}

// The folder of a save has a new name, which rank 0 finds.
void Saver::start_together(CheckpointMeta meta, Tensors tensors) {
  std::string folder;
  if (store_) {
    exchange_ = std::make_unique<ShardExchange>();
    writer_ =
        std::thread([this, meta = std::move(meta), tensors = std::move(tensors)] { write(meta, tensors); });
    folder = exchange_->wait_for_folder();
  }
  folder = all_gather_strings(world_, folder).front();
  if (folder.empty()) return;  // rank 0 knows why, and reports it
  collecting_ = true;
  if (!store_ && writes())
    writer_ = std::thread([this, folder, tensors = std::move(tensors)] { write_own_shard(folder, tensors); });
}

std::string Saver::shard_name() const {
  const std::string name = rank_file_name(world_.rank());
  return joins_ ? "part-of-" + name : name;
}

// Runs on the writer's thread of a rank other than 0.
void Saver::write_own_shard(const std::string& folder, const Tensors& tensors) {
  try {
    const WrittenShard shard = write_shard(files_, folder, shard_name(), tensors);
    own_shard_ = shard_json(shard).dump();
  } catch (const std::exception& error) {
    own_shard_ = Json{{"failed", error.what()}}.dump();
  }
  written_ = true;
}

void Saver::collect_shards(bool wait) {
  if (!collecting_) return;
  if (wait && store_) exchange_->wait_until_waiting();
  if (wait && !store_ && writer_.joinable()) writer_.join();
  const bool is_done = store_ ? exchange_->is_waiting() : !writes() || written_;
  for (const std::string& busy : all_gather_strings(world_, is_done ? "" : "busy"))
    if (!busy.empty()) return;
  if (!store_ && writer_.joinable()) writer_.join();
  collecting_ = false;
  if (!store_) written_ = false;
  const std::vector<std::string> all = all_gather_strings(world_, std::exchange(own_shard_, {}));
  if (store_) give_shards(all);
}

void Saver::give_shards(const std::vector<std::string>& of_ranks) {
  std::vector<WrittenShard> others;
  for (const int rank : writers_) {
    if (rank == 0) continue;
    const std::string place = fmt::format("rank {}", rank);
    const Json shard = parse_json(of_ranks[static_cast<size_t>(rank)], place);
    if (shard.contains("failed")) {
      const std::string why = shard.at("failed").get<std::string>();
      return exchange_->give_up(Error(fmt::format("{}: {}", place, why), ExitCode::kStorage));
    }
    others.push_back(shard_from_json(shard, place));
  }
  exchange_->give(std::move(others));
}

void Saver::wait(bool last) {
  const InPhase phase("saving a checkpoint");  // takes no time when none is in flight
  const auto start = Clock::now();
  collect_shards(/*wait=*/true);
  if (writer_.joinable()) writer_.join();
  if (written_) settle(last);
  if (last && policy_.is_failing()) fail(ExitCode::kStorage, "{}", why_failed_);
  pause_s_ += seconds_since(start);
}

void Saver::poll() {
  if (written_ && !collecting_) wait(/*last=*/false);
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
  written_ = false;
  if (result_) {
    policy_.succeeded();
    reporter_.event(
        "checkpoint",
        fmt::format("step {} saved{}, {} in {:.1f} s", step_,
                    result_->tag.empty() ? "" : " as " + result_->tag,
                    human_bytes(static_cast<double>(result_->num_bytes)), write_s_),
        {{"step", step_}, {"path", result_->path}, {"bytes", result_->num_bytes}, {"seconds", write_s_}});
    for (const std::string& warning : result_->warnings)
      reporter_.event("warning", warning, {{"step", step_}});
    saved_.push_back({{"tag", result_->tag},
                      {"path", result_->path},
                      {"bytes", result_->num_bytes},
                      {"saved_step", result_->step},
                      {"seconds", write_s_}});
    result_.reset();
  }
  if (!failure_) return;
  const std::exception_ptr failure = std::exchange(failure_, nullptr);
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    if (error.code() != ExitCode::kStorage) throw;
    note_failure(error, last);
  }
}

void Saver::note_failure(const Error& error, bool last) {
  policy_.failed();
  why_failed_ = error.what();
  failed_tags_.push_back(tag_);
  std::string next;
  if (!last)
    next = policy_.max_lost_s() == 0
               ? "; the run ends now (ckpt.max_lost = 0 s)"
               : fmt::format(
                     "; the next try is in about {}, and the run ends when they fail for {} "
                     "(ckpt.max_lost)",
                     short_time(policy_.next_try_s()), short_time(policy_.max_lost_s()));
  reporter_.event("error", why_failed_ + next, {{"step", step_}});
}

void Saver::give_up(const std::string& why) const {
  fail(ExitCode::kStorage,
       "[checkpoint] {}; the last try failed: {}. The same command resumes from the newest checkpoint once "
       "the folder can be written",
       why, why_failed_);
}

void Saver::require_allowed_loss() const {
  if (!policy_.allows_loss())
    give_up(fmt::format("no checkpoint could be written for ckpt.max_lost = {}",
                        short_time(policy_.max_lost_s())));
}

void Saver::trained(int64_t step, double seconds) {
  policy_.trained(step, seconds);
  if (!policy_.is_failing()) return;
  require_allowed_loss();
  const std::string next = retry_.step ? fmt::format("next try after step {}; ", *retry_.step) : "";
  reporter_.screen_warning(fmt::format("no checkpoint could be written for {}; {}after {} the run ends: {}",
                                       short_time(policy_.lost_s()), next, short_time(policy_.max_lost_s()),
                                       why_failed_));
}

void Saver::wait_before_retry(const std::atomic<int>& stop) {
  const auto start = Clock::now();
  const bool decides = world_.rank() == 0;
  if (decides)
    reporter_.screen_warning(fmt::format(
        "all steps are trained, and step {} is not saved. Waiting for room: next try in {}, the run "
        "ends in {} (ckpt.max_lost). Ctrl-C ends it now: {}",
        step_, short_time(policy_.retry_s()), short_time(policy_.left_s()), why_failed_));
  while (true) {
    const bool is_over = decides && seconds_since(start) >= policy_.retry_s();
    const std::vector<std::string> all = all_gather_strings(world_, stop != 0 ? kStopped
                                                                    : is_over ? kWaited
                                                                              : std::string());
    if (std::find(all.begin(), all.end(), kStopped) != all.end()) {
      if (decides) give_up("stopped before the last checkpoint could be written");
      return;  // the next collective says why it ends
    }
    if (all.front() == kWaited) break;
    std::this_thread::sleep_for(kLookForSignal);
  }
  policy_.waited(seconds_since(start));
  require_allowed_loss();
}

Json Saver::outcome() {
  Json outcome = {{"saved", std::exchange(saved_, Json::array())}};
  if (failed_tags_.empty()) return outcome;
  outcome["retry_step"] = policy_.retry_step(step_);
  outcome["tags"] = std::exchange(failed_tags_, {});
  return outcome;
}

Json Saver::take_saved() {
  if (!is_open_) return Json::array();
  collect_shards(/*wait=*/false);
  std::string mine;
  if (world_.rank() == 0 && !writer_.joinable()) mine = outcome().dump();
  const std::string all = all_gather_strings(world_, mine).front();
  if (all.empty()) return Json::array();
  is_open_ = false;
  Json outcome = parse_json(all, "checkpoint");
  if (outcome.contains("retry_step")) {
    retry_.step = outcome.at("retry_step");
    retry_.tags = outcome.at("tags").get<std::vector<std::string>>();
  }
  Json saved = outcome.at("saved");
  for (const Json& one : saved)
    if (uploads_ != nullptr) uploads_->add(one.at("path"));
  if (!saved.empty()) {
    saved_step_ = saved.back().at("saved_step");
    saved_path_ = saved.back().at("path");
  }
  return saved;
}

double Saver::take_pause_s() { return std::exchange(pause_s_, 0.0); }

}  // namespace tycho
