// A trial that this worker runs: its claim, its process and its numbers.
#pragma once
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "host/process/child_process.h"
#include "trainer/recipe/train_config.h"
#include "trainer/sweep/board.h"
#include "trainer/sweep/claim.h"
#include "trainer/sweep/definition.h"
#include "trainer/sweep/folder.h"
#include "trainer/sweep/policy.h"
#include "trainer/sweep/progress.h"
#include "trainer/sweep/search.h"

namespace tycho {

/// Options for starting trials.
struct LaunchTarget {
  std::string sweep_dir;  // absolute
  bool use_srun = false;
  std::string gpus;     // CUDA_VISIBLE_DEVICES; "" leaves it as it is
  int64_t threads = 0;  // for trials that do not set it; 0: all cores
};

/// Owned by one thread.
class Slot {
 public:
  /// Takes over a claim. `config` is the resolved recipe of the trial.
  Slot(std::unique_ptr<Claim> claim, Task task, const Trial& trial, TrainConfig config, LaunchTarget place,
       const SweepDefinition& definition);

  /// Starts the process, also again after it found its folder still owned. Returns the trial's end when it
  /// cannot be started.
  std::optional<TrialEnd> launch();
  /// Returns the end of the task once it is known; nullopt while it runs.
  std::optional<TrialEnd> poll();
  /// Ends the trial in good order. `rule` names the rule that asks for it, "" when the worker leaves.
  void stop(const std::string& rule);
  bool is_stopping() const { return stopping_; }
  void beat() { claim_->beat(); }

  RunProgress& progress() { return progress_; }
  const Task& task() const { return task_; }
  const std::string& trial_id() const { return task_.trial; }
  const std::string& gpus() const { return place_.gpus; }
  int64_t number() const { return trial_.number; }

 private:
  ChildCommand command() const;
  TrialEnd conclude(int exit_code, const std::string& message = "");

  using Clock = std::chrono::steady_clock;
  std::unique_ptr<Claim> claim_;
  Task task_;
  Trial trial_;  // as claimed
  TrainConfig config_;
  LaunchTarget place_;
  SweepDefinition definition_;  // as claimed, without its trials
  RunProgress progress_;
  int64_t first_step_ = 0;
  std::unique_ptr<ChildProcess> process_;
  Clock::time_point start_, owned_since_, launch_again_;
  bool waits_for_folder_ = false, stopping_ = false;
  std::string rule_;
};

/// Returns the arguments of `tycho run` for a trial, without those that set its folder.
std::vector<std::string> trial_pins(const SweepDefinition& definition, const Trial& trial);
/// Returns the words after "tycho" in the command that trains a trial in its folder below `sweep_dir`.
std::vector<std::string> trial_command(const SweepDefinition& definition, const Trial& trial,
                                       const std::string& sweep_dir);

}  // namespace tycho
