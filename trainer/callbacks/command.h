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
  Json arguments = Json::object();  // by the names of its spec
  std::string by;                   // a callback's name, or "ann (ctl)"
};

/// One argument of a command. Optional ones may be left out; nil then gives back what the recipe says.
struct CommandArgument {
  enum class Type { kNumber, kCount, kText, kTag, kDuration, kPair, kScheduler, kTable };
  const char* name;
  Type type;
  bool optional = false;
  bool named = false;  // given by name, after the others: { for_next = "200ba" }
};

struct CommandSpec {
  const char* name;
  const char* usage;  // "scale_lr(factor, { for_next = \"200ba\" })"
  const char* help;
  std::vector<CommandArgument> arguments;
};
const std::vector<CommandSpec>& all_commands();

/// The command of this name with checked arguments: `values` in the order of its spec, `named` by name.
/// Throws Error (kRecipe) that says how it is written.
Command make_command(const std::string& name, const Json& values, const Json& named, const std::string& by);
/// "scale_lr(0.5, for_next = 200ba)", for people.
std::string command_text(const Command& command);

Json command_json(const Command& command);
/// Checks like make_command.
Command command_from_json(const Json& json);

/// The fact of an event that says which command of an earlier start has ended, by name: its key was changed.
inline constexpr const char* kEndedCommand = "ended_command";

/// What commands changed for longer than a step: kept in every checkpoint, so that a resumed run has the same
/// values.
struct Controls {
  struct LrWindow {
    double factor = 1;
    std::optional<int64_t> until;  // steps done; none: to the end
    bool counts_steps = true;      // false: its length was given in tokens, samples or epochs
    bool operator==(const LrWindow&) const = default;
  };
  std::optional<double> lr;  // instead of the schedule's
  std::string lr_by;         // who pinned it
  std::vector<LrWindow> lr_windows;
  std::optional<std::array<double, 2>> betas;
  std::optional<double> weight_decay, clip_norm;
  Json scheduler;  // as in a recipe; null: the recipe's
  std::optional<Duration> log_every;
  std::map<std::string, double> mix;    // proportions of all streams of the data; none: the recipe's
  std::map<std::string, bool> enabled;  // callbacks that were switched on or off

  bool operator==(const Controls&) const = default;
  /// The learning rate of the optimizer step that follows `steps_done` steps, when the schedule says
  /// `scheduled`.
  double lr_of(double scheduled, int64_t steps_done) const;
  /// After `step` steps each step becomes 1 / `share` of what it was: what was given in tokens or samples
  /// takes `share` times as many.
  void follow_clock(int64_t step, double share);
  /// Forgets windows that are over.
  void expire(int64_t steps_done);

  Json to_json() const;  // null when nothing is changed
  static Controls from_json(const Json& json);
};

}  // namespace tycho
