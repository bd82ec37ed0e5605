// Which keys need which.
#include "trainer/idle_keys.h"

#include <fmt/format.h>

#include <concepts>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace tycho {
namespace {

class IdleKeys {
 public:
  /// Of a key that is set while what it needs is not there.
  void needs(bool set, bool there, const std::string& path, const char* what) {
    if (set && !there) found_.push_back({path, fmt::format("does nothing {}; leave it out", what)});
  }
  std::vector<ConfigProblem> take() { return std::move(found_); }

 private:
  std::vector<ConfigProblem> found_;
};

void check_optimizer(const TrainConfig& config, IdleKeys& idle) {
  if (const auto* sgd = std::get_if<SgdConfig>(&config.optimizer.value))
    idle.needs(sgd->nesterov, sgd->momentum > 0, "optimizer.nesterov", "without optimizer.momentum");
  idle.needs(config.guard.max_skips != GuardConfig().max_skips, config.guard.action == GuardAction::kSkip,
             "guard.max_skips", "unless guard.action = \"skip\"");
  idle.needs(config.clip.norm != ClipConfig().norm && config.clip.norm != 0, !config.clip.by_element_or_row(),
             "clip.norm", "beside clip.value and clip.adaptive");
  idle.needs(config.clip.adaptive.has_value(), !config.clip.value, "clip.adaptive", "beside clip.value");
  idle.needs(config.recompute.every != 1, config.recompute.mode != Recompute::kNone, "recompute.every",
             "unless recompute.mode is \"selective\" or \"full\"");
}

/// `warmup`, `ranks`, `shapes` and `memory` are for profiles on command too.
void check_profile(const ProfileConfig& profile, IdleKeys& idle) {
  const ProfileConfig standard;
  constexpr const char* kActive = "without profile.active, the steps that a trace holds";
  const bool active = profile.active.has_value();
  idle.needs(profile.skip_first.value != standard.skip_first.value, active, "profile.skip_first", kActive);
  idle.needs(profile.wait.value != standard.wait.value, active, "profile.wait", kActive);
  idle.needs(profile.repeat_count != standard.repeat_count, active, "profile.repeat_count", kActive);
}

/// False for functions of other events alone. One that hears nothing at all is another mistake.
bool may_hear_steps(EventFunctions own) {
  if (own.batch_start || own.after_forward || own.grads_ready || own.batch_end) return true;
  bool hears_anything = false;
  const auto look = [&](const char*, const std::optional<FunctionRef>& function, const char*) {
    hears_anything |= function.has_value();
  };
  own.event_fields(look);
  return !hears_anything;
}

void check_callback(const CallbackConfig& callback, const std::string& path, IdleKeys& idle) {
  const bool of_steps = std::visit(
      [](const auto& kind) {
        using Kind = std::decay_t<decltype(kind)>;
        if constexpr (std::derived_from<Kind, EventFunctions>) return may_hear_steps(kind);
        return !std::is_same_v<Kind, EarlyStopConfig> && !std::is_same_v<Kind, CheckpointBestConfig>;
      },
      callback.value);
  constexpr const char* kSteps =
      "for a callback that hears no event of steps (batch_start, after_forward, grads_ready, batch_end)";
  const CallbackOptions& options = callback_options(callback);
  idle.needs(options.every.has_value(), of_steps, path + ".every", kSteps);
  idle.needs(!options.at.empty(), of_steps, path + ".at", kSteps);
  if (const auto* spike = std::get_if<LossSpikeConfig>(&callback.value)) {
    const LossSpikeConfig standard;
    idle.needs(spike->factor != standard.factor, spike->action == SpikeAction::kScaleLr, path + ".factor",
               "unless action = \"scale_lr\"");
    idle.needs(spike->for_next.value != standard.for_next.value, spike->action != SpikeAction::kStop,
               path + ".for_next", "with action = \"stop\"");
  }
}

}  // namespace

std::vector<ConfigProblem> idle_keys(const TrainConfig& config) {
  IdleKeys idle;
  check_optimizer(config, idle);
  check_profile(config.profile, idle);
  for (const auto& [name, callback] : config.callbacks) check_callback(callback, "callbacks." + name, idle);
  return idle.take();
}

}  // namespace tycho
