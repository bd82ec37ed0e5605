// The commands, their checks, and the controls that outlast a step.
#include "trainer/callbacks/command.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/error.h"
#include "trainer/base/nearest.h"
#include "trainer/base/text/json_number.h"
#include "trainer/recipe/ckpt.h"

namespace tycho {
namespace {

using Type = CommandArgument::Type;
constexpr bool kOptional = true, kNamed = true;

const char* wanted(Type type) {
  switch (type) {
    case Type::kNumber: return "a number >= 0";
    case Type::kCount: return "a whole number > 0";
    case Type::kText: return "text";
    case Type::kTag: return "a name without \"/\"";
    case Type::kDuration: return "a duration such as \"200ba\"";
    case Type::kPair: return "two numbers from 0 to below 1";
    case Type::kScheduler: return "a schedule such as t.sched.linear{}";
    case Type::kTable: return "a table";
    case Type::kValue: return "a number or a list of numbers";
  }
  return "";
}

bool is_share(const Json& json) {
  return json.is_number() && json.get<double>() >= 0 && json.get<double>() < 1;
}

/// Returns true for text, true and false, too: why they cannot be set depends on the recipe.
bool is_value(const Json& json) {
  if (json.is_array()) return std::all_of(json.begin(), json.end(), is_value);
  return json.is_primitive() && !(json.is_number() && !std::isfinite(json.get<double>()));
}

bool fits(Type type, const Json& json) {
  switch (type) {
    case Type::kNumber:
      return json.is_number() && std::isfinite(json.get<double>()) && json.get<double>() >= 0;
    case Type::kCount: return json.is_number_integer() && json.get<int64_t>() > 0;
    case Type::kText: return json.is_string();
    case Type::kTag: return json.is_string() && is_tag(json.get<std::string>());
    case Type::kDuration: {
      if (!json.is_string()) return false;
      try {
        return Duration::parse(json.get<std::string>()).value > 0;
      } catch (const Error&) {
        return false;
      }
    }
    case Type::kPair: return json.is_array() && json.size() == 2 && is_share(json[0]) && is_share(json[1]);
    case Type::kScheduler: return json.is_object() && json.contains("kind");
    case Type::kTable: return json.is_structured();
    case Type::kValue: return is_value(json);
  }
  return false;
}

/// Returns the value as JSON; numbers that JSON cannot express as "inf", "-inf" or "nan".
std::string given_text(const Json& value) {
  const bool is_not_finite = value.is_number_float() && !std::isfinite(value.get<double>());
  return is_not_finite ? not_finite_text(value.get<double>()) : value.dump();
}

/// Returns an argument of a command; nullopt when it was left out.
template <class T>
std::optional<T> argument(const Command& command, const char* name) {
  return command.arguments.contains(name) ? std::optional<T>(command.arguments.at(name).get<T>())
                                          : std::nullopt;
}

void take(const CommandSpec& spec, const CommandArgument& argument, const Json& value, Json& out) {
  if (value.is_null()) {
    if (argument.optional) return;
    fail(ExitCode::kRecipe, "[cmd.{}] {} is missing: {}", spec.name, argument.name, spec.usage);
  }
  if (!fits(argument.type, value))
    fail(ExitCode::kRecipe, "[cmd.{}] {} = {}: expected {}", spec.name, argument.name, given_text(value),
         wanted(argument.type));
  out[argument.name] = value;
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

const std::vector<CommandSpec>& all_commands() {
  static const std::vector<CommandSpec> specs = {
      {"set_lr",
       "set_lr(3e-4)",
       "Pins the learning rate; set_lr(nil) returns to the schedule.",
       {{"lr", Type::kNumber, kOptional}},
       "set lr",
       "optimizer.lr",
       [](Controls& controls, const Command& command) {
         controls.lr = argument<double>(command, "lr");
         controls.lr_by = controls.lr ? command.by : "";
       }},
      {"scale_lr",
       "scale_lr(0.5, { for_next = \"200ba\" })",
       "Multiplies the schedule, for a while or until the end.",
       {{"factor", Type::kNumber}, {"for_next", Type::kDuration, kOptional, kNamed}},
       "",
       "optimizer.lr"},
      {"set_betas",
       "set_betas({ 0.9, 0.98 })",
       "Sets the betas of the optimizer; nil restores the recipe's.",
       {{"betas", Type::kPair, kOptional}},
       "set betas",
       "optimizer.betas",
       [](Controls& controls, const Command& command) {
         controls.betas = argument<std::array<double, 2>>(command, "betas");
       }},
      {"set_weight_decay",
       "set_weight_decay(0.1)",
       "Sets the weight decay; nil restores the recipe's.",
       {{"weight_decay", Type::kNumber, kOptional}},
       "set weight_decay",
       "optimizer.weight_decay",
       [](Controls& controls, const Command& command) {
         controls.weight_decay = argument<double>(command, "weight_decay");
       }},
      {"set_optimizer",
       "set_optimizer(\"eps\", 1e-8)",
       "Sets a number of the optimizer by its name in the recipe, or a list of numbers; nil restores the "
       "recipe's.",
       {{"name", Type::kText}, {"value", Type::kValue, kOptional}},
       "set optimizer.",
       "optimizer."},
      {"set_clip",
       "set_clip(1)",
       "Sets clip.norm; nil restores the recipe's.",
       {{"norm", Type::kNumber, kOptional}},
       "set clip",
       "clip.norm",
       [](Controls& controls, const Command& command) {
         controls.clip_norm = argument<double>(command, "norm");
       }},
      {"set_schedule",
       "set_schedule(t.sched.linear {})",
       "Changes the schedule; nil restores the recipe's.",
       {{"scheduler", Type::kScheduler, kOptional}},
       "",
       "scheduler",
       [](Controls& controls, const Command& command) {
         controls.scheduler = command.arguments.value("scheduler", Json());
       }},
      {"set_mix",
       "set_mix({ code = 0.2 })",
       "Sets proportions of the streams of train_data; the others share the rest. A new epoch begins. nil "
       "restores the recipe's.",
       {{"mix", Type::kTable, kOptional}}},
      {"skip_batches", "skip_batches(10)", "Skips the next batches.", {{"count", Type::kCount}}},
      {"save",
       "save(\"spike\")",
       "Saves a checkpoint; with a name, the newest of that name is kept.",
       {{"tag", Type::kTag, kOptional}},
       "save"},
      {"eval", "eval()", "Evaluates.", {}, "eval"},
      {"set_log_every",
       "set_log_every(\"10ba\")",
       "Sets log.every; nil restores the recipe's.",
       {{"every", Type::kDuration, kOptional}},
       "set log_every",
       "log.every",
       [](Controls& controls, const Command& command) {
         const auto every = argument<std::string>(command, "every");
         controls.log_every = every ? std::optional(Duration::parse(*every)) : std::nullopt;
       }},
      {"stop",
       "stop(\"why\")",
       "Ends the run at this boundary, with a checkpoint.",
       {{"reason", Type::kText, kOptional}},
       "stop"},
      {"pause",
       "pause(\"why\")",
       "Waits at this boundary until resume or stop.",
       {{"reason", Type::kText, kOptional}},
       "pause"},
      {"resume", "resume()", "Continues after pause.", {}, "resume"},
      {"disable", "disable(\"spike\")", "Switches a callback off.", {{"callback", Type::kText}}},
      {"enable", "enable(\"spike\")", "Switches a callback on again.", {{"callback", Type::kText}}},
      {"profile",
       "profile(\"3ba\")",
       "Records the next steps as a trace in the run folder.",
       {{"active", Type::kDuration, kOptional}},
       "profile"},
  };
  return specs;
}

const CommandSpec& command_spec(const std::string& name) {
  std::vector<std::string> names;
  for (const CommandSpec& spec : all_commands()) {
    if (name == spec.name) return spec;
    names.emplace_back(spec.name);
  }
  fail(ExitCode::kRecipe, "[cmd] no command {}{}", name, did_you_mean(name, names));
}

Command make_command(const std::string& name, const Json& values, const Json& named, const std::string& by) {
  const CommandSpec& spec = command_spec(name);
  Command command{name, Json::object(), by};
  size_t next = 0;
  std::vector<std::string> known;
  for (const CommandArgument& argument : spec.arguments) {
    known.emplace_back(argument.name);
    const bool by_name = named.is_object() && named.contains(argument.name);
    Json value = by_name ? named.at(argument.name) : Json(nullptr);
    if (!argument.named && next < values.size()) value = values.at(next++);
    take(spec, argument, value, command.arguments);
  }
  if (next < values.size())
    fail(ExitCode::kRecipe, "[cmd.{}] takes at most {} value{}: {}", name, next, next == 1 ? "" : "s",
         spec.usage);
  if (!named.is_object()) return command;
  for (const auto& [key, value] : named.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail(ExitCode::kRecipe, "[cmd.{}] has no {}: {}{}", name, key, spec.usage, did_you_mean(key, known));
  return command;
}

std::string key_of(const Command& command) {
  const CommandSpec& spec = command_spec(command.name);
  const std::string key = spec.key;
  return key.ends_with('.') ? key + command.arguments.at(spec.arguments[0].name).get<std::string>() : key;
}

std::string command_text(const Command& command) {
  std::string text;
  for (const CommandArgument& argument : command_spec(command.name).arguments) {
    if (!command.arguments.contains(argument.name)) continue;
    const Json& value = command.arguments.at(argument.name);
    text += (text.empty() ? "" : ", ") + (argument.named ? std::string(argument.name) + " = " : "") +
            (argument.type == Type::kDuration ? value.get<std::string>() : value.dump());
  }
  return command.name + "(" + text + ")";
}

Json command_json(const Command& command) {
  return {{"name", command.name}, {"arguments", command.arguments}, {"by", command.by}};
}

Command command_from_json(const Json& json) {
  return make_command(json.at("name"), Json::array(), json.at("arguments"), json.at("by"));
}

double Controls::lr_of(double scheduled, int64_t steps_done) const {
  if (lr) return *lr;
  for (const LrWindow& window : lr_windows)
    if (!window.until || steps_done < *window.until) scheduled *= window.factor;
  return scheduled;
}

void Controls::expire(int64_t steps_done) {
  std::erase_if(lr_windows,
                [&](const LrWindow& window) { return window.until && *window.until <= steps_done; });
}

void Controls::follow_clock(int64_t step, double share) {
  for (LrWindow& window : lr_windows)
    if (window.until && !window.counts_steps)
      window.until = step + std::llround(static_cast<double>(*window.until - step) * share);
}

Json Controls::to_json() const {
  if (*this == Controls()) return nullptr;
  Json json = Json::object();
  if (lr) json["lr"] = *lr;
  if (!lr_by.empty()) json["lr_by"] = lr_by;
  for (const LrWindow& window : lr_windows) {
    Json one = {{"factor", window.factor}, {"until", or_null(window.until)}};
    if (!window.counts_steps) one["counts_steps"] = false;
    json["lr_windows"].push_back(std::move(one));
  }
  if (betas) json["betas"] = *betas;
  if (weight_decay) json["weight_decay"] = *weight_decay;
  if (clip_norm) json["clip_norm"] = *clip_norm;
  for (const auto& [name, value] : optimizer) json["optimizer"][name] = value;
  if (!scheduler.is_null()) json["scheduler"] = scheduler;
  if (log_every) json["log_every"] = log_every->str();
  for (const auto& [name, proportion] : mix) json["mix"][name] = proportion;
  for (const auto& [name, on] : enabled) json["enabled"][name] = on;
  return json;
}

namespace {

Controls read_controls(const Json& json) {
  Controls controls;
  for (const auto& [key, value] : json.items()) {
    if (key == "lr") {
      controls.lr = value.get<double>();
    } else if (key == "lr_by") {
      controls.lr_by = value.get<std::string>();
    } else if (key == "lr_windows") {
      for (const Json& window : value) {
        const Json& until = window.at("until");
        controls.lr_windows.push_back(
            {window.at("factor"),
             until.is_null() ? std::nullopt : std::optional<int64_t>(until.get<int64_t>()),
             window.value("counts_steps", true)});
      }
    } else if (key == "betas") {
      controls.betas = {value.at(0).get<double>(), value.at(1).get<double>()};
    } else if (key == "weight_decay") {
      controls.weight_decay = value.get<double>();
    } else if (key == "clip_norm") {
      controls.clip_norm = value.get<double>();
    } else if (key == "optimizer") {
      for (const auto& [name, number] : value.items()) controls.optimizer[name] = number;
    } else if (key == "scheduler") {
      controls.scheduler = value;
    } else if (key == "log_every") {
      controls.log_every = Duration::parse(value.get<std::string>());
    } else if (key == "mix") {
      for (const auto& [name, proportion] : value.items()) controls.mix[name] = proportion.get<double>();
    } else if (key == "enabled") {
      for (const auto& [name, on] : value.items()) controls.enabled[name] = on.get<bool>();
    } else {
      fail(ExitCode::kUnusable,
           "[train state] commands changed \"{}\", which is unknown: a newer Tycho wrote this checkpoint; "
           "use that version to resume",
           key);
    }
  }
  return controls;
}

}  // namespace

Controls Controls::from_json(const Json& json) {
  try {
    return read_controls(json);
  } catch (const Json::exception& error) {
    fail(ExitCode::kUnusable,
         "[train state] expected what commands changed, got something else ({}): resume from another "
         "checkpoint",
         error.what());
  }
}

}  // namespace tycho
