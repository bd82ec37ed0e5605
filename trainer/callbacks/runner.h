// Runs the callbacks of a run: when each is due, what happens when it fails, and how long it took.
// Torch-free.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/duration.h"
#include "trainer/base/json.h"
#include "trainer/callbacks/callback.h"
#include "trainer/callbacks/command.h"
#include "trainer/callbacks/config.h"
#include "trainer/callbacks/event.h"
#include "trainer/metrics/reporter.h"

namespace tycho {

/// One text of every rank, by rank. Collective.
using GatherTexts = std::function<std::vector<std::string>(const std::string& mine)>;

/// What all ranks know after a boundary.
struct Agreement {
  std::vector<Command> commands;  // of rank 0, in order, those of operators at their end
  std::string
      failure;     // that is to stop the run: "rank 0, batch_end of "spike": recipes/x.lua:31: ..."; or ""
  int signal = 0;  // that asked some rank to stop, or 0
};

/// What a runner gets from the run around it; all of it outlives the runner.
struct RunnerContext {
  int rank = 0, local_rank = 0;
  Reporter& reporter;
  GatherTexts gather;
  Dist* dist = nullptr;
  std::function<double(const Duration&)> in_steps;  // a duration of the recipe as steps
  /// clock_lead of a unit; null: none has one.
  std::function<double(DurationUnit)> lead = {};
};

/// Owned by the trainer's thread.
class CallbackRunner {
 public:
  /// Leaves out what this rank does not run; all ranks know the names of all.
  CallbackRunner(std::vector<Callback> callbacks, RunnerContext context);

  /// Asks the context again when each callback is due.
  void follow_clock();
  bool empty() const { return callbacks_.empty(); }
  /// The kind of the callback that is running now; none between calls.
  std::optional<CallbackKind> running() const { return running_; }
  /// True when some callback is due at this event and step: what is costly to prepare is prepared only then.
  bool wants(Event event, int64_t step) const;
  /// Calls every callback that is due, by order, then name. What one raises waits for the boundary.
  void announce(const EventInfo& info);
  /// Collective: what failed on any rank is known to all, and handled alike by the callback's policy.
  /// `operators`: commands that did not come from callbacks; `signal`: the one that this rank got, or 0.
  Agreement boundary(int64_t step, std::vector<Command> operators, int signal);
  /// What a callback of another rank than 0 records, as Reporter::metric and Reporter::event take it: rank 0
  /// reports it at the next boundary, with this rank's number.
  void record_metric(int64_t step, const std::string& name, double value);
  void record_event(const std::string& kind, const std::string& text, const Json& facts);
  /// Switches a callback; Error (kRecipe) for an unknown name.
  void enable(const std::string& name, bool on);
  const std::map<std::string, bool>& switched() const { return enabled_; }

  /// {name: state} of those that have one.
  Json state() const;
  void set_state(const Json& states, const std::map<std::string, bool>& enabled);
  /// Says what each took: an event "callbacks" with calls, total and longest time of each.
  void report_costs(double run_s) const;

 private:
  struct Slot {
    Callback callback;
    double every = 1, lead = 0, from = 0, until = 0;  // lead: of the unit of `every`
    std::vector<double> at;
    int64_t calls = 0;
    double total_s = 0, longest_s = 0;
    bool warned = false;
  };
  bool due(const Slot& slot, Event event, int64_t step) const;
  void call(Slot& slot, const EventInfo& info);
  void account(Slot& slot, const EventInfo& info, double seconds);
  /// Follows the policy; the text when it is to stop the run.
  std::string handle(const Json& failure, int64_t step);

  RunnerContext context_;
  std::optional<CallbackKind> running_;
  std::vector<Slot> callbacks_;
  std::map<std::string, OnError> known_;  // name -> policy after the first steps, of all ranks' callbacks
  std::map<std::string, bool> explicit_policy_;
  std::map<std::string, bool> enabled_;
  std::vector<Command> commands_;
  Json failures_ = Json::array(), records_ = Json::array();
};

}  // namespace tycho
