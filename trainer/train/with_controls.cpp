// Overlays the commands' values on a copy of the recipe's config.
#include "trainer/train/with_controls.h"

#include <algorithm>
#include <functional>

#include "trainer/base/error.h"
#include "trainer/recipe/config_io.h"
#include "trainer/recipe/optimizer_numbers.h"

namespace tycho {
namespace {

SchedulerConfig read_scheduler(const TrainConfig& recipe, const Json& scheduler) {
  Json tree = config_to_json(recipe);
  tree["scheduler"] = scheduler;
  return read_config_or_fail(tree).scheduler;
}

constexpr const char* kStreams = "train_data.streams";

/// A command that can be held in Controls: its text, the keys that it replaces, and a function that ends it.
struct Pinned {
  std::string name, text;
  std::vector<std::string> keys;  // each includes all keys below it
  std::function<void(Controls&)> end;
};

std::string call_text(const char* name, const Json& value) {
  return fmt::format("{}({})", name, value.dump());
}

std::vector<Pinned> pinned_by(const Controls& held, int64_t stage) {
  std::vector<Pinned> all;
  // Adds a command that sets a value, which ends when it is given without one.
  const auto pin = [&](const char* name, std::string text, std::vector<std::string> keys = {}) {
    const CommandSpec& spec = command_spec(name);
    if (keys.empty()) keys = {spec.key};
    all.push_back({name, std::move(text), std::move(keys),
                   [&spec](Controls& c) { spec.set(c, {.name = spec.name, .by = ""}); }});
  };
  const std::vector<std::string> rates = {"optimizer.lr", "scheduler"};
  if (held.lr)
    pin("set_lr", call_text("set_lr", *held.lr) + (held.lr_by.empty() ? "" : " by " + held.lr_by), rates);
  std::string factors;
  for (const Controls::LrWindow& window : held.lr_windows)
    factors += (factors.empty() ? "" : " and ") + call_text("scale_lr", window.factor);
  if (!factors.empty())
    all.push_back({"scale_lr", factors, rates, [](Controls& c) { c.lr_windows.clear(); }});
  if (!held.scheduler.is_null())
    pin("set_schedule", "set_schedule(" + held.scheduler.value("kind", "") + ")");
  if (held.betas) pin("set_betas", call_text("set_betas", *held.betas));
  if (held.weight_decay) pin("set_weight_decay", call_text("set_weight_decay", *held.weight_decay));
  for (const auto& [name, value] : held.optimizer)
    all.push_back({"set_optimizer",
                   fmt::format("set_optimizer({}, {})", Json(name).dump(), value.dump()),
                   {"optimizer." + name, "optimizer.kind"},
                   [name = name](Controls& c) { c.optimizer.erase(name); }});
  if (held.clip_norm) pin("set_clip", call_text("set_clip", *held.clip_norm), {"clip"});
  if (held.log_every) pin("set_log_every", call_text("set_log_every", held.log_every->str()));
  if (!held.mix.empty())
    all.push_back({"set_mix",
                   call_text("set_mix", held.mix),
                   {stage == 0 ? std::string(kStreams) : "data_stages"},
                   [](Controls& c) { c.mix.clear(); }});
  for (const auto& [name, on] : held.enabled)
    all.push_back({on ? "enable" : "disable",
                   call_text(on ? "enable" : "disable", name),
                   {"callbacks." + name},
                   [name = name](Controls& c) { c.enabled.erase(name); }});
  return all;
}

/// Returns true for a path that is a key or below it; or above it, when the path was added or removed as a
/// whole. For streams, only their shares count.
bool concerns(const std::string& path, const std::string& key) {
  if (key == kStreams && path.size() > key.size() && !path.ends_with(".proportion") &&
      !path.ends_with(".repeat") && !path.ends_with(".choose"))
    return false;
  const auto is_below = [](const std::string& a, const std::string& b) {
    return a == b || (a.starts_with(b) && (a[b.size()] == '.' || a[b.size()] == '['));
  };
  return is_below(path, key) || is_below(key, path);
}

/// Returns "optimizer.lr = 0.01" for the first key that is a single value.
std::string recipe_text(const Json& recipe, const std::vector<std::string>& keys) {
  std::string pointer = "/" + keys.front();
  std::replace(pointer.begin(), pointer.end(), '.', '/');
  const Json::json_pointer place(pointer);
  if (!recipe.contains(place) || recipe.at(place).is_object()) return keys.front() + " of the recipe";
  return fmt::format("{} = {} of the recipe", keys.front(), recipe.at(place).dump());
}

}  // namespace

std::vector<HeldCommand> end_changed_commands(Controls& controls,
                                              const std::vector<ConfigDifference>& changes,
                                              const Json& recipe, int64_t stage) {
  std::vector<HeldCommand> held;
  for (const Pinned& pinned : pinned_by(controls, stage)) {
    const std::string key = pinned.keys.front().starts_with("optimizer.") ? pinned.keys.front() : "";
    const auto change = std::find_if(changes.begin(), changes.end(), [&](const ConfigDifference& one) {
      return std::any_of(pinned.keys.begin(), pinned.keys.end(),
                         [&](const std::string& key) { return concerns(one.path, key); });
    });
    if (change == changes.end()) {
      held.push_back({pinned.name, true,
                      fmt::format("{} still holds, instead of {}; another value there ends it", pinned.text,
                                  recipe_text(recipe, pinned.keys)),
                      key});
      continue;
    }
    pinned.end(controls);
    held.push_back({pinned.name, false,
                    fmt::format("{} has ended: {} was {} and is {} now", pinned.text, change->path,
                                change->old_value.empty() ? "not there" : change->old_value,
                                change->new_value.empty() ? "gone" : change->new_value),
                    key});
  }
  return held;
}

TrainConfig with_controls(const TrainConfig& recipe, const Controls& controls) {
  TrainConfig config = recipe;
  if (!controls.scheduler.is_null()) config.scheduler = read_scheduler(recipe, controls.scheduler);
  if (!controls.optimizer.empty()) config.optimizer = with_numbers(recipe, controls.optimizer);
  if (controls.clip_norm) config.clip.norm = *controls.clip_norm;
  if (controls.log_every) config.log.every = *controls.log_every;
  if (controls.betas) {
    if (!betas_of(config.optimizer))
      fail(ExitCode::kRecipe, "[cmd.set_betas] {} has no betas", recipe.optimizer.kind());
    set_betas(config.optimizer, *controls.betas);
  }
  if (controls.weight_decay)
    std::visit([&](auto& optimizer) { optimizer.weight_decay = *controls.weight_decay; },
               config.optimizer.value);
  return config;
}

}  // namespace tycho
