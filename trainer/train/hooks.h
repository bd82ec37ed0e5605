// The hooks of the training loop: callbacks, a schedule that is called at every step, and commands of
// operators.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/callbacks/callback.h"
#include "trainer/callbacks/command.h"
#include "trainer/callbacks/runner.h"
#include "trainer/comm/communicator.h"
#include "trainer/control/channel.h"
#include "trainer/metrics/reporter.h"
#include "trainer/metrics/step_metrics.h"
#include "trainer/recipe/event.h"
#include "trainer/recipe/run_clock.h"
#include "trainer/recipe/train_config.h"
#include "trainer/session/callback_source.h"
#include "trainer/state/train_state.h"

namespace tycho {

/// An event of the loop with what it alone knows.
struct AnnouncedEvent {
  Event event;
  Json facts = json_object();
  std::optional<double> grad_norm = {};  // of the running step
};

/// Owned by the trainer's thread.
class Hooks {
 public:
  /// `source` may be null, for no hooks. All references must outlive the hooks. `local_rank` is that of this
  /// process on its machine.
  Hooks(const TrainConfig& config, const RunInfo& run, const RunClock& clock, CallbackSource* source,
        Communicator& world, int local_rank, Reporter& reporter);
  /// Applies a changed clock.
  void follow_clock() { runner_.follow_clock(); }

  bool wants(Event event, int64_t step) const { return runner_.wants(event, step); }
  /// Calls the callbacks that are due. `steps_done`: before this step, if one is running. `metrics` and
  /// `eval` are of the newest step that is done.
  void announce(AnnouncedEvent announced, int64_t steps_done, StepMetrics metrics, const EvalRecords& eval);
  /// Returns true while an event of a step that is not done yet is announced.
  bool is_in_step() const { return in_step_; }
  /// Agrees on what to do now. Answers operators, who see `info`; waits for their lines no longer than
  /// `wait_ms`. `signal` is the one that this rank received, or 0. Collective.
  Agreement boundary(const EventInfo& info, int wait_ms, int signal);
  /// Records the outcome of a command that boundary() returned after this step: `refused` says why it has no
  /// effect, or is "".
  void outcome(const Command& command, const std::string& refused, int64_t step);
  /// Tells operators what their commands of the last boundary did. Call after every outcome().
  void answer_operators();
  /// Called by code that needs all ranks. Inside a callback of all ranks, agrees with them that they make the
  /// same call, `what`. Throws Error (kUsage) in code that runs on this rank alone: other callbacks, and
  /// lines of operators.
  void require_all_ranks(const std::string& what);
  /// Queues a command from the owner of the run for the next boundary. On rank 0.
  void queue(Command command) { queued_.push_back(std::move(command)); }
  bool has_queued() const { return !queued_.empty(); }
  void enable(const std::string& name, bool on) { runner_.enable(name, on); }
  /// Record for the run: reported at once on rank 0; what another rank records, rank 0 reports after the next
  /// boundary.
  void record_metric(int64_t step, const std::string& name, double value);
  void record_event(const std::string& kind, const std::string& text, const Json& facts);

  /// Calls a dynamic schedule, if there is one, for the step after `steps_done`; it is then collective. The
  /// schedule sees the clock of max_duration, in steps of the present size. Returns false when Ctrl-C ended
  /// it on some rank. Throws Error (kRecipe) on all ranks when it fails on one.
  bool ask_schedule(int64_t steps_done, const std::optional<StepMetrics>& last);
  /// Returns the newest factor of a dynamic schedule; 1 for another schedule.
  double last_factor() const { return factor_; }

  /// Write and read the state in checkpoints.
  void save_state(TrainState& state, const std::optional<StepMetrics>& last) const;
  void load_state(const TrainState& state);
  void report_costs(double run_s) const { runner_.report_costs(run_s); }

 private:
  /// A line of an operator whose commands have no outcome yet.
  struct OpenLine {
    OperatorLine line;
    std::string text;  // the answer so far
    std::vector<Command> commands;
    bool is_refused = false;
  };

  std::vector<Command> serve_operators(const EventInfo& info, int wait_ms);
  const TrainConfig& config_;
  const RunInfo& run_;
  const RunClock& clock_;
  Communicator& world_;
  Reporter& reporter_;
  CallbackSource* source_;
  std::unique_ptr<ControlChannel> channel_;  // on rank 0, when there is code that can answer
  std::unique_ptr<Dist> dist_;
  CallbackRunner runner_;
  std::vector<Command> queued_;
  std::vector<OpenLine> open_lines_;
  std::unique_ptr<ScheduleCode> schedule_;
  double factor_ = 1;
  bool in_step_ = false;                // an event of a running step is announced
  bool serving_ = false;                // a line of an operator is running
  std::optional<double> resumed_loss_;  // loss of the step before the first one of this process
};

}  // namespace tycho
