// The rules between the keys of callbacks.
#include "trainer/recipe/callbacks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <concepts>
#include <type_traits>

#include "trainer/base/config_problems.h"
#include "trainer/recipe/ckpt.h"
#include "trainer/recipe/eval.h"

namespace tycho {
namespace {

bool hears_nothing(const EventFunctions& own) {
  return std::none_of(own.functions.begin(), own.functions.end(),
                      [](const auto& function) { return function.has_value(); });
}

/// Returns true when the callback has a function of a step's event, or none at all (which is reported as
/// another mistake).
bool may_hear_steps(const EventFunctions& own) {
  return hears_nothing(own) || std::any_of(kEvents.begin(), kEvents.end(), [&](const EventEntry& entry) {
           return entry.of_step && own[entry.event].has_value();
         });
}

bool hears_steps(const CallbackConfig& callback) {
  return std::visit(
      [](const auto& kind) {
        using Kind = std::decay_t<decltype(kind)>;
        if constexpr (std::derived_from<Kind, EventFunctions>) return may_hear_steps(kind);
        return !std::is_same_v<Kind, EarlyStopConfig> && !std::is_same_v<Kind, ThresholdStopConfig> &&
               !std::is_same_v<Kind, CheckpointBestConfig>;
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
  std::vector<const char*> of_step;
  for (const EventEntry& entry : kEvents)
    if (entry.of_step) of_step.push_back(entry.name);
  const std::string when =
      fmt::format("for a callback without any event of a step ({})", fmt::join(of_step, ", "));
  problems.idle(path + ".every", options.every.has_value(), steps, when.c_str());
  problems.idle(path + ".at", !options.at.empty(), steps, when.c_str());
}

/// Reports a callback that acts on evaluations when there are none, or when its metric is not one of theirs.
void check_eval_metric(const std::string& metric, const std::vector<std::string>& known,
                       const std::string& path, ConfigProblems& problems) {
  if (known.empty())
    problems.add(path, "runs after evaluations, but there are none; set eval_data.NAME and eval.every");
  else if (std::find(known.begin(), known.end(), metric) == known.end())
    problems.add(path + ".metric", "\"{}\" is not a metric of these evaluations; available: {}{}", metric,
                 fmt::join(known, ", "), why_not_measured(metric, known));
}

void check_spike(const LossSpikeConfig& spike, const std::string& path, ConfigProblems& problems) {
  const LossSpikeConfig standard;
  problems.idle(path + ".factor", spike.factor != standard.factor, spike.action == SpikeAction::kScaleLr,
                "unless action = \"scale_lr\"");
  problems.idle(path + ".for_next", spike.for_next.value != standard.for_next.value,
                spike.action != SpikeAction::kStop, "with action = \"stop\"");
}

/// Returns true for what a shell can export.
bool is_variable_name(const std::string& name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

}  // namespace

const CallbackOptions& callback_options(const CallbackConfig& config) {
  return std::visit([](const auto& kind) -> const CallbackOptions& { return kind; }, config.value);
}

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
  if (const auto* stop = std::get_if<ThresholdStopConfig>(&callback.value))
    check_eval_metric(stop->metric, eval_metrics, path, problems);
  if (const auto* best = std::get_if<CheckpointBestConfig>(&callback.value)) {
    check_eval_metric(best->metric, eval_metrics, path, problems);
    if (!is_tag(best->tag))
      problems.add(path + ".tag", "\"{}\" is not a valid checkpoint name: write a name without \"/\"",
                   best->tag);
  }
  if (callback.is<GenerateSamplesConfig>() && !has_tokenizer)
    problems.add(path, "generates text, but there is no tokenizer; set tokenizer = \"PATH/tokenizer.json\"");
  // The value may be the secret address itself, so it is not quoted.
  if (const auto* notify = std::get_if<NotifyConfig>(&callback.value);
      notify != nullptr && !is_variable_name(notify->url_env))
    problems.add(
        path + ".url_env",
        "is not the name of a variable: export SLACK_WEBHOOK_URL=ADDRESS, and write \"SLACK_WEBHOOK_URL\" "
        "here");
  if (const auto* spike = std::get_if<LossSpikeConfig>(&callback.value)) check_spike(*spike, path, problems);
}

}  // namespace tycho
