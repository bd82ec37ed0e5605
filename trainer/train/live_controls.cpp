// Each command that acts on the loop is one entry of a table.
#include "trainer/train/live_controls.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <variant>

#include "trainer/base/error.h"
#include "trainer/data/loader/loader.h"
#include "trainer/data/loader/mix.h"
#include "trainer/recipe/config_io.h"
#include "trainer/recipe/data_stages.h"
#include "trainer/recipe/optimizer_numbers.h"
#include "trainer/saving/resume.h"
#include "trainer/train/run_length.h"

namespace tycho {
namespace {

/// A command that is being applied.
struct Call {
  const Command& command;
  const CommandTargets& targets;
  const LiveControls& live;
  const TrainConfig& recipe;
  TrainState& state;
  Controls next;                             // what is to hold from the next step on
  std::unique_ptr<DataLoader> remixed = {};  // of set_mix
};

/// Returns an argument of a command; nullopt when it was left out.
template <class T>
std::optional<T> argument(const Call& call, const char* name) {
  if (!call.command.arguments.contains(name)) return std::nullopt;
  return call.command.arguments.at(name).get<T>();
}

std::string text_argument(const Call& call, const char* name) {
  return argument<std::string>(call, name).value_or("");
}

/// A length of the command as whole steps, rounded up.
int64_t steps_argument(const Call& call, const std::string& text) {
  return static_cast<int64_t>(std::ceil(call.live.steps_of(Duration::parse(text))));
}

void scale_lr(Call& call) {
  Controls::LrWindow window{*argument<double>(call, "factor"), std::nullopt};
  if (const std::string text = text_argument(call, "for_next"); !text.empty()) {
    const DurationUnit given = Duration::parse(text).unit;
    const DurationUnit unit = given == DurationUnit::kFraction ? call.recipe.max_duration.unit : given;
    window.until = call.state.step + steps_argument(call, text);
    window.counts_steps = unit == DurationUnit::kBatch;
  }
  call.next.lr_windows.push_back(window);
}

void set_mix(Call& call) {
  const DataConfig now = with_mix(stage_data(call.recipe, call.state.stage), call.next.mix);
  const auto mix = argument<Json>(call, "mix");
  call.next.mix = mix ? changed_mix(now, *mix) : Mix();
  call.remixed = call.targets.data.remixed(call.state, call.next.mix);
}

/// Acts as the command of its own that a number has: set_lr, set_weight_decay, set_betas for two betas.
void set_optimizer(Call& call) {
  const std::string name = text_argument(call, "name"), key = key_of(call.command);
  const auto value = argument<Json>(call, "value");
  for (const CommandSpec& spec : all_commands()) {
    if (spec.set == nullptr || spec.key != key || (name == "betas" && !betas_of(call.recipe.optimizer)))
      continue;
    return spec.set(call.next,
                    make_command(spec.name, Json::array({value.value_or(Json())}), Json(), call.command.by));
  }
  require_settable(call.recipe.optimizer, name);
  if (value)
    call.next.optimizer[name] = *value;
  else
    call.next.optimizer.erase(name);
}

void stop(Call& call) {
  std::string& reason = call.targets.halt.reason;
  reason = fmt::format("stopped by {}", call.command.by);
  if (const std::string why = text_argument(call, "reason"); !why.empty()) reason += ": " + why;
}

void profile(Call& call) {
  const std::string active = text_argument(call, "active");
  call.targets.profiler.order(active.empty() ? 1 : std::max<int64_t>(1, steps_argument(call, active)));
}

using Effect = void (*)(Call&);

/// The effects of commands that do more than setting a value (CommandSpec::set).
const std::map<std::string_view, Effect>& effects() {
  static const std::map<std::string_view, Effect> all = {
      {"scale_lr", scale_lr},
      {"enable", [](Call& c) { c.targets.hooks.enable(text_argument(c, "callback"), true); }},
      {"disable", [](Call& c) { c.targets.hooks.enable(text_argument(c, "callback"), false); }},
      {"set_optimizer", set_optimizer},
      {"set_mix", set_mix},
      {"skip_batches", [](Call& c) { c.targets.data.skip_batches(*argument<int64_t>(c, "count"), c.state); }},
      {"save", [](Call& c) { c.targets.saver.request(text_argument(c, "tag")); }},
      {"eval", [](Call& c) { c.state.eval_open = true; }},
      {"profile", profile},
      {"stop", stop},
      {"pause", [](Call& c) { c.targets.halt.paused = true; }},
      {"resume", [](Call& c) { c.targets.halt.paused = false; }}};
  return all;
}

double peak_lr(const OptimizerConfig& config) {
  return std::visit([](const auto& kind) { return kind.lr; }, config.value);
}

}  // namespace

LiveControls::LiveControls(const TrainConfig& recipe, int64_t num_samples, TrainState& state)
    : recipe_(recipe),
      state_(state),
      num_samples_(num_samples),
      total_(total_steps(recipe, num_samples)),
      now_(recipe),
      schedule_(make_schedule(recipe, total_, num_samples)) {}

void LiveControls::apply(const Command& command, const CommandTargets& targets) {
  const CommandSpec& spec = command_spec(command.name);
  Call call{command, targets, *this, recipe_, state_, state_.controls};
  if (spec.set != nullptr)
    spec.set(call.next, command);
  else
    effects().at(command.name)(call);
  take(std::move(call.next), targets.update);
  if (!call.remixed) return;
  targets.data.switch_to(std::move(call.remixed), state_);
  targets.loss_watch.restart();
}

void LiveControls::apply_all(const std::vector<Command>& commands, const CommandTargets& targets) {
  for (const Command& command : commands) {
    const Json facts = {{"step", state_.step}, {"command", command_json(command)}};
    const std::string said = fmt::format("{} by {}", command_text(command), command.by);
    try {
      apply(command, targets);
      targets.hooks.outcome(command, "", state_.step);
      targets.reporter.event("command", said, facts);
    } catch (const Error& error) {
      targets.hooks.outcome(command, error.what(), state_.step);
      if (error.code() != ExitCode::kRecipe) targets.hooks.answer_operators();
      if (error.code() != ExitCode::kRecipe) throw;
      targets.reporter.event("warning", fmt::format("{} was rejected: {}", said, error.what()), facts);
    }
  }
  targets.hooks.answer_operators();
}

void LiveControls::take(Controls controls, WeightUpdate& update) {
  if (controls == state_.controls) return;
  if (controls.clip_norm && recipe_.clip.by_element_or_row())
    fail(ExitCode::kRecipe, "[trainer] set_clip sets clip.norm, but this run clips by clip.{}",
         recipe_.clip.value ? "value" : "adaptive");
  TrainConfig changed = with_controls(recipe_, controls);
  Schedule schedule = make_schedule(changed, total_, num_samples_, clock_);
  if (controls.betas != state_.controls.betas || controls.weight_decay != state_.controls.weight_decay ||
      controls.optimizer != state_.controls.optimizer)
    update.change(changed);
  now_ = std::move(changed);
  schedule_ = std::move(schedule);
  state_.controls = std::move(controls);
}

void LiveControls::resume(const CheckpointInfo& checkpoint, TrainState& state, WeightUpdate& update) {
  const Json recipe = config_to_json(recipe_);
  held_ = end_changed_commands(state.controls, changes_since(checkpoint.manifest.at("recipe"), recipe),
                               recipe, state.stage);
  clock_ = clock_from(checkpoint, recipe_);
  if (clock_ != state.clock) state.controls.follow_clock(state.step, step_growth(checkpoint, recipe_));
  schedule_ = make_schedule(now_, total_, num_samples_, clock_);
  take(std::move(state.controls), update);
  state.controls = state_.controls;
}

void LiveControls::report_held(Reporter& reporter) {
  for (const HeldCommand& one : std::exchange(held_, {})) {
    Json facts = {{"step", state_.step}};
    facts[one.holds ? "held_command" : kEndedCommand] = one.name;
    if (!one.holds && !one.key.empty()) facts[kEndedKey] = one.key;
    reporter.event("warning", one.note, facts);
  }
}

double LiveControls::steps_of(const Duration& length) const {
  return in_steps(length, recipe_, total_, num_samples_);
}

bool LiveControls::is_due(const std::optional<Duration>& every, int64_t ahead) const {
  if (!every) return false;
  const double now = static_cast<double>(state_.step + ahead) + clock_lead(every->unit, recipe_, clock_);
  return passes_on_clock(now, steps_of(*every));
}

int64_t LiveControls::stage() const { return stage_at(recipe_, state_.step, total_, clock_); }

double LiveControls::lr_at(int64_t steps_done, double factor) const {
  return state_.controls.lr_of(scheduled_lr(steps_done, factor), steps_done);
}

double LiveControls::scheduled_lr(int64_t steps_done, double factor) const {
  return peak_lr(now_.optimizer) * schedule_factor(schedule_, steps_done) * factor;
}

bool is_applied(const CommandSpec& spec) { return spec.set != nullptr || effects().contains(spec.name); }

}  // namespace tycho
