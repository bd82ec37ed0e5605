// When the events of the training loop happen, and what callbacks are given. Torch-free.
//
//   setup                      everything is built
//   load                       weights and state are there
//   fit_start
//   ├─ epoch_start             when a batch is the first of its epoch
//   ├─ batch_start
//   │    forward               of every micro-batch
//   │      after_forward       of the last one
//   │    backward
//   │    grads_ready           summed over ranks, not clipped
//   │    optimizer step
//   ├─ batch_end
//   ├─ epoch_end
//   ├─ ── boundary ──          all ranks agree on what failed, and apply commands
//   ├─ eval_start, eval_end    when an evaluation is due; a boundary follows
//   ├─ ckpt_saved              when a checkpoint became durable meanwhile
//   └─ signal, error           when there was one; a boundary follows
//   fit_end
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/callbacks/command.h"
#include "trainer/callbacks/config.h"
#include "trainer/callbacks/event.h"
#include "trainer/metrics/step_metrics.h"

namespace tycho {

/// observe and control run on rank 0 (observe where its `ranks` say), everywhere on all ranks; only control
/// commands.
enum class CallbackKind { kObserve, kControl, kEverywhere };

/// Loss of an evaluation.
struct EvalScore {
  double loss = 0, perplexity = 0;
  int64_t tokens = 0, step = 0;
};

/// The newest evaluation, and the one with the lowest loss.
struct EvalRecord {
  EvalScore last, best;
};

/// What a run remembers of its evaluations: over all sets together, and of each by its name.
struct EvalRecords {
  std::optional<EvalRecord> total;  // none before the first one of these sets
  std::map<std::string, EvalRecord> sets;
};

/// What a callback may look at. Valid while the event is announced.
struct EventInfo {
  Event event;
  const StepMetrics&
      metrics;  // of the newest step that is done; in grads_ready grad_norm is the running step's
  const RunInfo& run;
  const EvalRecords* eval = nullptr;  // null: nothing was evaluated
  Json facts = Json::object();        // what this event alone knows: tag, path, kind, message, reason
};

/// Reductions over all ranks, for everywhere callbacks. Every call is collective.
class Dist {
 public:
  virtual ~Dist() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Around a call of a callback: what one rank does not ask for, or cannot because it failed, the others
  /// learn instead of waiting. Returns when every rank has left.
  virtual void enter() = 0;
  virtual void leave(bool failed) = 0;
  /// Whether gather has thrown since enter() because another rank had failed: what fails then is no cause.
  virtual bool told_of_failure() const = 0;
  /// The values of every rank, by rank: what sums, means and extremes are made of. All give as many, at the
  /// same `place` of the recipe ("x.lua:31"). Throws Error (kTopology) on all ranks when they do not, or when
  /// one failed.
  virtual std::vector<std::vector<double>> gather(const std::vector<double>& values,
                                                  const std::string& place) = 0;
};

/// What the code of a callback is given beside the event. Commands count only when the code returns.
struct CallbackPort {
  std::vector<Command>& commands;
  Dist* dist = nullptr;  // of everywhere callbacks
};

/// The code of one callback, whoever wrote it. Used by the trainer's thread.
class CallbackCode {
 public:
  virtual ~CallbackCode() = default;
  virtual bool handles(Event event) const = 0;
  /// Throws Error with file:line on a failure, kInterrupted when Ctrl-C ended it; its state is then what it
  /// was before.
  virtual void run(const EventInfo& info, CallbackPort& port) = 0;
  /// Plain data, for checkpoints; null when it has none.
  virtual Json state() const = 0;
  virtual void set_state(const Json& state) = 0;
};

/// A callback as the trainer runs it.
struct Callback {
  std::string name;
  CallbackKind kind = CallbackKind::kObserve;
  CallbackOptions options;
  std::unique_ptr<CallbackCode> code;
  ObserveRanks ranks = ObserveRanks::kZero;  // of observe
};

/// A schedule that is asked before every step: scheduler = dynamic.
class ScheduleCode {
 public:
  virtual ~ScheduleCode() = default;
  /// Share of the peak for the step that follows `steps_done`. Throws Error with file:line.
  virtual double factor(int64_t steps_done, int64_t total_steps, std::optional<double> last_loss) = 0;
  virtual Json state() const = 0;
  virtual void set_state(const Json& state) = 0;
};

class TrainingSession;

/// Where the code behind a recipe is. Outlives the run that uses it.
class CallbackSource {
 public:
  virtual ~CallbackSource() = default;
  /// One for each of the recipe's callbacks.
  virtual std::vector<Callback> callbacks() = 0;
  /// Null unless the schedule is dynamic.
  virtual std::unique_ptr<ScheduleCode> schedule() = 0;
  /// Called before the first event: what callbacks look at. Null when the session is closed.
  virtual void set_session(TrainingSession* session) = 0;
  /// What an operator typed: its value as text. Commands wait in the port; without `may_command` there are
  /// none.
  virtual std::string evaluate(const std::string& code, bool may_command, const EventInfo& info,
                               CallbackPort& port) = 0;
};

}  // namespace tycho
