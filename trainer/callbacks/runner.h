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
#include "trainer/metrics/reporter.h"
#include "trainer/recipe/callbacks.h"
#include "trainer/recipe/event.h"

namespace tycho {

/// Gathers one string of every rank, by rank. Collective.
using AllGatherStrings = std::function<std::vector<std::string>(const std::string& mine)>;

/// The result of a boundary, the same on all ranks.
struct Agreement {
  std::vector<Command> commands;  // those of rank 0, in order, operators' commands last
  std::string
      failure;     // failure that stops the run: "rank 0, batch_end of "spike": recipes/x.lua:31: ..."; or ""
  int signal = 0;  // the signal that asked some rank to stop, or 0
};

/// Services of the run for a runner. All of them outlive the runner.
struct RunnerContext {
  int rank = 0, local_rank = 0;
  Reporter& reporter;
  AllGatherStrings gather;
  Dist* dist = nullptr;
  std::function<double(const Duration&)> in_steps;  // converts a duration of the recipe to steps
  /// Returns clock_lead of a unit; null when every lead is 0.
  std::function<double(DurationUnit)> lead = {};
};

/// Owned by the trainer's thread.
class CallbackRunner {
 public:
  /// Keeps only the callbacks that run on this rank, and the names of all.
  CallbackRunner(std::vector<Callback> callbacks, RunnerContext context);

  /// Computes again when each callback is due, from the context.
  void follow_clock();
  bool empty() const { return callbacks_.empty(); }
  /// Returns the kind of the callback that is running now; nullopt between calls.
  std::optional<CallbackKind> running() const { return running_; }
  /// Returns true when a callback is due at this event and step, so that costly facts are prepared only then.
  bool wants(Event event, int64_t step) const;
  /// Calls every callback that is due, by order, then by name. A failure is handled at the next boundary.
  void announce(const EventInfo& info);
  /// Tells all ranks of the failures on any rank and applies the callbacks' policies, the same on every rank.
  /// `operators` are the commands that did not come from callbacks, `signal` is the one that this rank
  /// received, or 0. Collective.
  Agreement boundary(int64_t step, std::vector<Command> operators, int signal);
  /// Keep what a callback on another rank than 0 records (see Reporter::metric and Reporter::event); rank 0
  /// reports it at the next boundary with this rank's number.
  void record_metric(int64_t step, const std::string& name, double value);
  void record_event(const std::string& kind, const std::string& text, const Json& facts);
  /// Switches a callback on or off. Throws Error (kRecipe) for an unknown name.
  void enable(const std::string& name, bool on);
  const std::map<std::string, bool>& switched() const { return enabled_; }

  /// Returns {name: state} of the callbacks that have state.
  Json state() const;
  void set_state(const Json& states, const std::map<std::string, bool>& enabled);
  /// Reports an event "callbacks" with the calls, total and longest time of each callback.
  void report_costs(double run_s) const;

 private:
  struct Slot {
    Callback callback;
    double every = 1, lead = 0, from = 0, until = 0;  // lead: clock_lead for the unit of `every`
    std::vector<double> at;
    int64_t calls = 0;
    double total_s = 0, longest_s = 0;
    bool warned = false;
  };
  bool due(const Slot& slot, Event event, int64_t step) const;
  void call(Slot& slot, const EventInfo& info);
  void account(Slot& slot, const EventInfo& info, double seconds);
  /// Applies the policy for a failure. Returns the message when it stops the run, otherwise "".
  std::string handle(const Json& failure, int64_t step);

  RunnerContext context_;
  std::optional<CallbackKind> running_;
  std::vector<Slot> callbacks_;
  std::map<std::string, OnError>
      known_;  // name -> policy after the first steps, for the callbacks of all ranks
  std::map<std::string, bool> explicit_policy_;
  std::map<std::string, bool> enabled_;
  std::vector<Command> commands_;
  Json failures_ = json_array(), records_ = json_array();
};

}  // namespace tycho
