// The order of the events of the training loop, and the interface of callbacks. Torch-free.
//
//   setup                      everything is built
//   load                       weights and state are loaded
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
//   ├─ ── boundary ──          all ranks agree on failures and apply commands
//   ├─ eval_start, eval_end    when an evaluation is due; a boundary follows
//   ├─ ckpt_saved              when a checkpoint has become durable
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
#include "trainer/metrics/step_metrics.h"
#include "trainer/recipe/callbacks.h"
#include "trainer/recipe/event.h"

namespace tycho {

class Progress;

/// Observers and controllers run on rank 0 (observers on the ranks that `ranks` names), kEverywhere on all
/// ranks. Only controllers send commands.
enum class CallbackKind { kObserve, kControl, kEverywhere };

/// Loss of an evaluation.
struct EvalScore {
  double loss = 0, perplexity = 0;
  int64_t tokens = 0, step = 0;
  std::optional<double> bits_per_byte = {};
};

/// The newest evaluation, and the one with the lowest loss.
struct EvalRecord {
  EvalScore last, best;
};

/// The evaluations that a run remembers: the total over all sets, and each set by name.
struct EvalRecords {
  std::optional<EvalRecord> total;  // nullopt before the first evaluation of all these sets
  std::map<std::string, EvalRecord> sets;
};

/// The facts that a callback may read. Valid while the event is announced.
struct EventInfo {
  Event event;
  const StepMetrics&
      metrics;  // of the newest finished step; in grads_ready, grad_norm is that of the running step
  const RunInfo& run;
  const EvalRecords* eval = nullptr;  // null: nothing was evaluated
  Json facts = json_object();         // the facts of this event alone: tag, path, kind, message, reason
};

/// Reductions over all ranks, for everywhere callbacks. Every call is collective.
class Dist {
 public:
  virtual ~Dist() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// enter() and leave() enclose a call of a callback. When a rank fails or leaves without the reductions
  /// that others ask for, the others learn this instead of waiting. leave() returns when every rank has left.
  virtual void enter() = 0;
  virtual void leave(bool failed) = 0;
  /// Returns true when gather has thrown since enter() because another rank failed; a failure of this rank is
  /// then not the cause.
  virtual bool told_of_failure() const = 0;
  /// Returns the values of every rank, by rank; sums, means and extremes are computed from them. All ranks
  /// give the same number of values at the same `place` of the recipe ("x.lua:31"). Throws Error (kTopology)
  /// on all ranks when they do not, or when one failed.
  virtual std::vector<std::vector<double>> gather(const std::vector<double>& values,
                                                  const std::string& place) = 0;
};

/// Outputs of a callback. Commands are kept only when the code returns.
struct CallbackPort {
  std::vector<Command>& commands;
  Dist* dist = nullptr;          // set for everywhere callbacks
  Progress* progress = nullptr;  // of the engine's process, for t.debug(); null in tests
  double waited_s = 0;           // at prompts of t.debug(): not counted as time of the callback
};

/// The code of one callback. Used by the trainer's thread.
class CallbackCode {
 public:
  virtual ~CallbackCode() = default;
  virtual bool handles(Event event) const = 0;
  /// Throws Error with file:line on a failure, kInterrupted when Ctrl-C ended it. The state is then
  /// unchanged.
  virtual void run(const EventInfo& info, CallbackPort& port) = 0;
  /// Returns plain data for checkpoints; null when there is no state.
  virtual Json state() const = 0;
  virtual void set_state(const Json& state) = 0;
};

struct Callback {
  std::string name;
  CallbackKind kind = CallbackKind::kObserve;
  CallbackOptions options;
  std::unique_ptr<CallbackCode> code;
  ObserveRanks ranks = ObserveRanks::kZero;  // for observers
};

/// A schedule that is called before every step: scheduler = dynamic.
class ScheduleCode {
 public:
  virtual ~ScheduleCode() = default;
  /// Returns the share of the peak learning rate for the step after `steps_done` steps. Throws Error with
  /// file:line.
  virtual double factor(int64_t steps_done, int64_t total_steps, std::optional<double> last_loss) = 0;
  virtual Json state() const = 0;
  virtual void set_state(const Json& state) = 0;
};

}  // namespace tycho
