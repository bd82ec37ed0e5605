// Commands that callbacks and operators send to a run: plain records that every rank applies at the same step
// boundary. Torch-free.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/duration.h"
#include "trainer/base/json.h"

namespace tycho {

struct Command {
  std::string name;
  Json arguments = json_object();  // keyed by the argument names of its spec
  std::string by;                  // a callback's name, or "ann (ctl)"
};

/// One argument of a command. An optional argument may be left out; nil then restores the recipe's value.
struct CommandArgument {
  enum class Type { kNumber, kCount, kText, kTag, kDuration, kPair, kScheduler, kTable, kValue };
  const char* name;
  Type type;
  bool optional = false;
  bool named = false;  // passed by name, after the others: { for_next = "200ba" }
};

struct Controls;

/// A command: everything about it except its effect on parts of the loop (see LiveControls).
struct CommandSpec {
  const char* name;
  const char* usage;  // "scale_lr(factor, { for_next = \"200ba\" })"
  const char* help;
  std::vector<CommandArgument> arguments;
  /// Spelling after `tycho ctl RUN`: "stop", "set lr" for `set lr=VALUE`, "set optimizer." for
  /// `set optimizer.NAME=VALUE`, whose first argument is NAME; "" for none.
  const char* ctl = "";
  /// Key of the recipe in whose place the first argument holds. "optimizer.": the second argument holds in
  /// the place of the key that the first one names. "" for none.
  const char* key = "";
  /// Sets its value, or returns to the recipe's without one. Null for commands that do more.
  void (*set)(Controls& controls, const Command& command) = nullptr;
};
const std::vector<CommandSpec>& all_commands();
/// Returns the command of that name. Throws Error (kRecipe).
const CommandSpec& command_spec(const std::string& name);

/// Returns the command with checked arguments: `values` in the order of its spec, `named` by name. Throws
/// Error (kRecipe) that shows its usage.
Command make_command(const std::string& name, const Json& values, const Json& named, const std::string& by);
/// Returns the key of the recipe in whose place a command holds: its spec's, "optimizer.NAME" for one that
/// names a number of the optimizer; "" for none.
std::string key_of(const Command& command);
/// Returns a text for display: "scale_lr(0.5, for_next = 200ba)".
std::string command_text(const Command& command);

Json command_json(const Command& command);
/// Checks the arguments and throws like make_command.
Command command_from_json(const Json& json);

/// Key of the fact in an event that names a command of an earlier start that has ended because the recipe's
/// key was changed.
inline constexpr const char* kEndedCommand = "ended_command";
/// Key of the fact beside kEndedCommand that names the recipe's key, for keys of the optimizer.
inline constexpr const char* kEndedKey = "ended_key";

/// Values that commands set for longer than a step. Every checkpoint has them, so that a resumed run
/// continues with them.
struct Controls {
  struct LrWindow {
    double factor = 1;
    std::optional<int64_t> until;  // steps done at its end; nullopt: the end of the run
    bool counts_steps = true;      // false: its length was given in tokens, samples or epochs
    bool operator==(const LrWindow&) const = default;
  };
  std::optional<double> lr;  // replaces the schedule's
  std::string lr_by;         // who pinned it
  std::vector<LrWindow> lr_windows;
  std::optional<std::array<double, 2>> betas;
  std::optional<double> weight_decay, clip_norm;
  std::map<std::string, Json> optimizer;  // other numbers of the optimizer, and lists of them
  Json scheduler;                         // in the form of a recipe; null: the recipe's
  std::optional<Duration> log_every;
  std::map<std::string, double> mix;    // proportions of all streams of the data; empty: the recipe's
  std::map<std::string, bool> enabled;  // callbacks that were switched on or off

  bool operator==(const Controls&) const = default;
  /// Returns the learning rate of the optimizer step after `steps_done` steps, given the schedule's rate
  /// `scheduled`.
  double lr_of(double scheduled, int64_t steps_done) const;
  /// Adapts lengths given in tokens or samples when, after `step` steps, a step becomes 1 / `share` of its
  /// size: they take `share` times as many steps.
  void follow_clock(int64_t step, double share);
  /// Drops windows that have ended.
  void expire(int64_t steps_done);

  Json to_json() const;  // null when nothing is changed
  static Controls from_json(const Json& json);
};

}  // namespace tycho
