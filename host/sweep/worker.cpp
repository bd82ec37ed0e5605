// One thread that looks at its trials many times a second. Trials are processes, so nothing here waits.
#include "host/sweep/worker.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <thread>

#include "host/machine.h"
#include "host/sweep/slot.h"
#include "trainer/base/error.h"
#include "trainer/lock/owner.h"
#include "trainer/rendezvous/rank_cores.h"
#include "trainer/sweep/table.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;
constexpr auto kTick = std::chrono::milliseconds(10);
constexpr auto kLookEvery = std::chrono::milliseconds(100);
constexpr size_t kMaxStorageFailures = 3;  // in a row: this machine's storage is at fault, not the trials
constexpr int kIdleBeats = 6;

/// A timer; is_due() returns true each time the interval has passed.
class Timer {
 public:
  explicit Timer(Seconds interval) : interval_(interval) {}
  bool is_due() {
    const auto now = Clock::now();
    if (now < next_) return false;
    next_ = now + std::chrono::duration_cast<Clock::duration>(interval_);
    return true;
  }

 private:
  Seconds interval_;
  Clock::time_point next_;
};

class Worker {
 public:
  Worker(SweepFolder& folder, const SweepProgram* program, const WorkerOptions& options, const StopFlag& stop)
      : folder_(folder),
        program_(program),
        options_(options),
        stop_(stop),
        watch_(folder.dir()),
        host_(this_process(0).host),
        gpus_(gpu_sets(options.gpus_per_trial, options.slots)),
        look_(kLookEvery),
        beat_(Seconds(heartbeat_s())),
        watch_others_(Seconds(std::min(heartbeat_s(), 1.0))) {}

  int run();

 private:
  double heartbeat_s() const { return board().definition().config.heartbeat.value; }
  const Board& board() const { return folder_.board(); }
  bool is_leaving() const { return stop_ != 0 || board().is_paused() || gives_up_.has_value(); }

  void look();
  void reap();
  void ask_rules(Slot& slot);
  void watch_others();
  void fill();
  bool take_next();
  std::optional<TrainConfig> resolve(const Trial& trial, const Task& task);
  bool add_repetitions();
  void record_end(const Slot& slot, const TrialEnd& end);
  bool is_at_end() const;
  void say_end(const Trial& trial, const TrialEnd& end) const;
  void tidy() const;
  std::string free_gpus() const;

  SweepFolder& folder_;
  const SweepProgram* program_;
  WorkerOptions options_;
  const StopFlag& stop_;
  ClaimWatch watch_;
  std::string host_;
  std::vector<std::string> gpus_;
  Timer look_, beat_, watch_others_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::map<std::string, int64_t> foreign_claims_;  // trial -> claim that has a file but is not in the ledger
  std::optional<int64_t> own_seed_;
  Clock::time_point idle_since_ = Clock::now();
  std::set<std::string> storage_failures_;  // consecutive trials
  std::optional<Error> gives_up_;           // why this worker ends early
};

int Worker::run() {
  while (true) {
    reap();
    if (look_.is_due()) look();
    if (is_leaving()) {
      for (const auto& slot : slots_) slot->stop("");
      if (slots_.empty()) break;
    } else {
      fill();
      if (slots_.empty() && is_at_end()) break;
      const double idle_s = Seconds(Clock::now() - idle_since_).count();
      if (slots_.empty() && options_.leave_when_idle && idle_s > kIdleBeats * heartbeat_s()) break;
    }
    std::this_thread::sleep_for(kTick);
  }
  if (gives_up_) throw *gives_up_;
  if (stop_ == 0 && !board().is_paused()) tidy();
  return stop_ == 0 ? 0 : 128 + stop_;
}

void Worker::look() {
  folder_.refresh();
  const bool due = beat_.is_due();
  for (const auto& slot : slots_) {
    if (due) slot->beat();
    const Trial* trial = board().find(slot->trial_id());
    if (trial && trial->claim > slot->task().claim)
      slot->stop("");  // another worker thought us dead and took over
    if (slot->progress().update()) ask_rules(*slot);
  }
  if (watch_others_.is_due()) watch_others();
}

void Worker::ask_rules(Slot& slot) {
  const SweepConfig& config = board().definition().config;
  if (slot.is_stopping()) return;
  bool has_functions = false;
  for (const auto& [name, rule] : config.stop) {
    has_functions |= rule.is<FunctionRule>();
    if (const auto* patience = std::get_if<PatienceRule>(&rule.value))
      if (is_out_of_patience(*patience, slot.progress(), config.metric.goal)) return slot.stop(name);
  }
  if (!has_functions || program_ == nullptr || !slot.progress().newest().contains("train")) return;
  try {
    const std::string name = program_->broken_rule(slot.progress().newest());
    if (!name.empty()) slot.stop(name);
  } catch (const Error& error) {
    gives_up_ = error;  // all trials are put back before it is said
  }
}

void Worker::reap() {
  for (size_t i = 0; i < slots_.size();) {
    const std::optional<TrialEnd> end = slots_[i]->poll();
    if (!end) {
      ++i;
      continue;
    }
    // Record the end before releasing the claim, so that nobody mistakes the trial for a lost one.
    record_end(*slots_[i], *end);
    slots_.erase(slots_.begin() + static_cast<std::ptrdiff_t>(i));
    idle_since_ = Clock::now();
  }
}

void Worker::record_end(const Slot& slot, const TrialEnd& end) {
  const Trial* before = board().find(slot.trial_id());
  folder_.record(end_fact(*before, slot.task().claim, slot.task().rung, end));
  const bool storage = end.exit_code == static_cast<int>(ExitCode::kStorage);
  if (!storage) storage_failures_.clear();
  if (storage) storage_failures_.insert(slot.trial_id());
  if (storage_failures_.size() == kMaxStorageFailures)
    gives_up_ = Error(fmt::format("[sweep] {} trials in a row failed because of the storage of {}: this "
                                  "worker stops; see the ledger for the reason",
                                  kMaxStorageFailures, host_),
                      ExitCode::kStorage);
  say_end(*board().find(slot.trial_id()), end);
}

void Worker::say_end(const Trial& trial, const TrialEnd& end) const {
  std::string text = fmt::format("trial {} {}", trial.number, state_name(end.state));
  if (end.result.value)
    text += fmt::format(", {} {:.5g}", board().definition().config.metric.name, *end.result.value);
  text += fmt::format(" at step {} in {}", end.result.step, seconds_text(end.wall_s));
  if (!end.note.empty()) text += ": " + end.note;
  fmt::print("{}  [{}]\n", text, sweep_summary(board()));
  std::fflush(stdout);
}

/// Puts back the trials of workers that are gone.
void Worker::watch_others() {
  std::vector<std::pair<std::string, int64_t>> lost;
  const auto is_mine = [this](const std::string& id) {
    return std::any_of(slots_.begin(), slots_.end(),
                       [&](const auto& slot) { return slot->trial_id() == id; });
  };
  for (const Trial& trial : board().trials()) {
    const auto foreign = foreign_claims_.find(trial.plan.id);
    const int64_t unknown = foreign == foreign_claims_.end() ? 0 : foreign->second;
    const int64_t claim = std::max(unknown, trial.is_working() ? trial.claim : 0);
    if (claim == 0 || is_mine(trial.plan.id)) continue;
    if (unknown != 0 && trial.claim >= unknown) {
      foreign_claims_.erase(foreign);
      continue;
    }
    if (watch_.is_lost(trial.plan.id, claim, heartbeat_s())) lost.emplace_back(trial.plan.id, claim);
  }
  if (lost.empty()) return;
  folder_.refresh();  // an end is written before its claim is let go
  for (const auto& [id, claim] : lost) {
    const Trial& trial = *board().find(id);
    const bool unknown = foreign_claims_.erase(id) > 0;
    if (!unknown && (!trial.is_working() || trial.claim != claim)) continue;
    // If a worker died between the file and the ledger, the claim is recorded here.
    if (trial.claim < claim) folder_.record(claim_fact(trial, claim, trial.rung, "an unknown host", 0));
    RunProgress progress(folder_.run_dir(trial));
    progress.update();
    const TrialEnd end = judge_lost(trial, progress.step() - trial.last.step);
    folder_.record(end_fact(trial, claim, trial.rung, end));
    fmt::print("trial {} was lost: {}\n", trial.number, end.note);
  }
}

void Worker::fill() {
  while (slots_.size() < static_cast<size_t>(options_.slots)) {
    if (!take_next() && !add_repetitions()) return;
  }
}

/// Takes one task. Returns false when there is none now.
bool Worker::take_next() {
  std::set<std::string> passed_over;
  for (const auto& [id, claim] : foreign_claims_) passed_over.insert(id);
  for (const auto& slot : slots_) passed_over.insert(slot->trial_id());
  const std::optional<Task> task = next_task(board(), host_, passed_over);
  if (!task) return false;
  std::unique_ptr<Claim> claim = Claim::take(real_files(), folder_.dir(), task->trial, task->claim);
  if (!claim) {  // somebody was faster, or died on the way to the ledger
    foreign_claims_[task->trial] = task->claim;
    folder_.refresh();
    return true;
  }
  const Trial trial = *board().find(task->trial);
  folder_.record(claim_fact(trial, task->claim, task->rung, host_, getpid()), /*durable=*/false);
  std::optional<TrainConfig> config = resolve(trial, *task);
  if (!config) return true;
  LaunchTarget place{folder_.dir(), options_.use_srun, free_gpus(), 0};
  if (options_.gpus_per_trial == 0 && options_.slots > 1)
    place.threads = std::max<int64_t>(1, cores_of_rank({}) / options_.slots);
  slots_.push_back(std::make_unique<Slot>(std::move(claim), *task, trial, std::move(*config),
                                          std::move(place), board().definition()));
  if (const std::optional<TrialEnd> end = slots_.back()->launch()) {
    record_end(*slots_.back(), *end);
    slots_.pop_back();
    return !gives_up_;
  }
  folder_.record(running_fact(trial, task->claim), /*durable=*/false);
  fmt::print("trial {} started{}: {}\n", trial.number,
             task->until.empty() ? "" : fmt::format(" to {}", task->until), pins_text(trial.plan.pins));
  std::fflush(stdout);
  return true;
}

/// Returns the config of a trial. A config that the recipe refuses fails at once, without a process.
std::optional<TrainConfig> Worker::resolve(const Trial& trial, const Task& task) {
  RecipeRequest request;
  request.file = board().definition().recipe;
  for (const std::string& pin : trial_pins(board().definition(), trial)) request.pins.push_back({0, pin});
  try {
    // Ctrl-C is the worker's here, which puts the trial back; a recipe without end has its own limit.
    return resolve_recipe(request).config;
  } catch (const Error& error) {
    if (error.code() != ExitCode::kRecipe) throw;
    const std::string text = error.what();
    TrialEnd end;
    end.state = TrialState::kFailed;
    end.exit_code = static_cast<int>(error.code());
    end.note = text.substr(0, text.find('\n'));
    folder_.record(end_fact(trial, task.claim, task.rung, end));
    say_end(*board().find(task.trial), end);
    return {};
  }
}

/// Plans the finalists' runs with other seeds. Returns true when there was one to plan.
bool Worker::add_repetitions() {
  if (board().definition().config.seeds.empty() || !search_is_settled(board())) return false;
  if (!own_seed_) {
    RecipeRequest request;
    request.file = board().definition().recipe;
    for (const std::string& pin : trial_pins(board().definition(), board().trials().front()))
      request.pins.push_back({0, pin});
    own_seed_ = resolve_recipe(request).config.seed;
  }
  const auto missing = missing_repetitions(board(), *own_seed_);
  for (const auto& [plan, finalist] : missing) folder_.record(trial_fact(plan, finalist));
  return !missing.empty();
}

bool Worker::is_at_end() const {
  const auto& trials = board().trials();
  return std::none_of(trials.begin(), trials.end(), [](const Trial& trial) { return trial.is_open(); }) &&
         search_is_settled(board());
}

/// Removes the checkpoints of all but the best trials, when the sweep asks for it.
void Worker::tidy() const {
  const auto keep = static_cast<size_t>(board().definition().config.keep_checkpoints);
  if (keep == 0 || !is_at_end()) return;
  const std::vector<const Trial*> best = ranking(board());
  std::set<std::string> kept;
  for (size_t i = 0; i < std::min(keep, best.size()); ++i) kept.insert(best[i]->plan.id);
  for (const Trial& trial : board().trials()) {
    const std::string run_dir = folder_.run_dir(trial);
    std::error_code error;
    // What lies behind a link is not the sweep's.
    if (kept.contains(trial.plan.id) || std::filesystem::is_symlink(run_dir, error)) continue;
    std::filesystem::remove_all(run_dir + "/checkpoints", error);
  }
}

std::string Worker::free_gpus() const {
  for (const std::string& set : gpus_) {
    const bool taken =
        std::any_of(slots_.begin(), slots_.end(), [&](const auto& slot) { return slot->gpus() == set; });
    if (!taken) return set;
  }
  return "";
}

}  // namespace

int work(SweepFolder& folder, const SweepProgram* program, const WorkerOptions& options,
         const StopFlag& stop) {
  const std::string& place = folder.board().definition().folder;
  std::error_code error;
  std::filesystem::current_path(place, error);
  if (error)
    fail(ExitCode::kUnusable, "[sweep] the sweep was started in {}, which cannot be accessed here: {}", place,
         error.message());
  return Worker(folder, program, options, stop).run();
}

}  // namespace tycho
