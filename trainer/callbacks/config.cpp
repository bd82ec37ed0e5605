// The rules between the keys of callbacks.
#include "trainer/callbacks/config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <concepts>
#include <type_traits>

#include "trainer/base/config_problems.h"
#include "trainer/base/field_types.h"
#include "trainer/base/json_writer.h"
#include "trainer/checkpoint/config.h"
#include "trainer/eval/sets.h"

namespace tycho {
namespace {

/// True when no event of a callback of one's own has a function.
bool hears_nothing(const OwnCallback& callback) {
  const Json all = to_json(callback);
  return std::none_of(all.begin(), all.end(), [](const Json& value) { return is_function_ref(value); });
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

bool hears_steps(const CallbackConfig& callback) {
  return std::visit(
      [](const auto& kind) {
        using Kind = std::decay_t<decltype(kind)>;
        if constexpr (std::derived_from<Kind, EventFunctions>) return may_hear_steps(kind);
        return !std::is_same_v<Kind, EarlyStopConfig> && !std::is_same_v<Kind, CheckpointBestConfig>;
      },
      callback.value);
}

void check_options(const CallbackConfig& callback, const std::string& path, ConfigProblems& problems) {
  const CallbackOptions& options = callback_options(callback);
  if (options.every) problems.within_run(path + ".every", *options.every);
  if (options.from) problems.within_run(path + ".from", *options.from);
  if (options.until_) problems.within_run(path + ".until_", *options.until_);
  for (const Duration& moment : options.at) problems.within_run(path + ".at", moment);
  const bool steps = hears_steps(callback);
  constexpr const char* kSteps =
      "for a callback without any event of a step (batch_start, after_forward, grads_ready, batch_end)";
  problems.idle(path + ".every", options.every.has_value(), steps, kSteps);
  problems.idle(path + ".at", !options.at.empty(), steps, kSteps);
}

/// What acts on evaluations needs some, and a metric that they have.
void check_eval_metric(const std::string& metric, const std::vector<std::string>& known,
                       const std::string& path, ConfigProblems& problems) {
  if (known.empty())
    problems.add(path, "runs after evaluations, but there are none; set eval_data.NAME and eval.every");
  else if (std::find(known.begin(), known.end(), metric) == known.end())
    problems.add(path + ".metric", "\"{}\" is not a metric of these evaluations; available: {}", metric,
                 fmt::join(known, ", "));
}

void check_spike(const LossSpikeConfig& spike, const std::string& path, ConfigProblems& problems) {
  const LossSpikeConfig standard;
  problems.idle(path + ".factor", spike.factor != standard.factor, spike.action == SpikeAction::kScaleLr,
                "unless action = \"scale_lr\"");
  problems.idle(path + ".for_next", spike.for_next.value != standard.for_next.value,
                spike.action != SpikeAction::kStop, "with action = \"stop\"");
}

}  // namespace

void check(const CallbackConfig& callback, const std::string& path,
           const std::vector<std::string>& eval_metrics, bool has_tokenizer, ConfigProblems& problems) {
  check_options(callback, path, problems);
  std::visit(
      [&](const auto& kind) {
        if constexpr (std::derived_from<std::decay_t<decltype(kind)>, OwnCallback>)
          if (hears_nothing(kind))
            problems.add(path, "has no event: write batch_end = function(ctx) ... end, or another event");
      },
      callback.value);
  if (const auto* stop = std::get_if<EarlyStopConfig>(&callback.value))
    check_eval_metric(stop->metric, eval_metrics, path, problems);
  if (const auto* best = std::get_if<CheckpointBestConfig>(&callback.value)) {
    check_eval_metric(best->metric, eval_metrics, path, problems);
    if (!is_tag(best->tag))
      problems.add(path + ".tag", "\"{}\" is not a valid checkpoint name: write a name without \"/\"",
                   best->tag);
  }
  if (callback.is<GenerateSamplesConfig>() && !has_tokenizer)
    problems.add(path, "generates text, but there is no tokenizer; set tokenizer = \"PATH/tokenizer.json\"");
  if (const auto* spike = std::get_if<LossSpikeConfig>(&callback.value)) check_spike(*spike, path, problems);
}

}  // namespace tycho
