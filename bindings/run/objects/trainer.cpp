// The Lua objects of a trainer and of the steps that it did.
#include "bindings/run/session_objects.h"
#include "trainer/base/bytes.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/plot.h"

namespace tycho {
namespace {

constexpr int kSparkColumns = 24;

struct Steps {
  std::vector<StepMetrics> list;
  int64_t total_steps = 0;
  int64_t step = 0;  // present step of the run
  bool unicode = true;
  std::optional<LrPin> lr_pin;
  std::string reason;  // why fewer steps were run than requested; "" when all were
};

SessionRef& ref(Call& call) { return call.self<SessionRef>(); }

/// Pushes a number of the newest step; nil before the first one of this process.
template <auto Member>
int newest(Call& call) {
  const auto last = session(call).state().last;
  if (!last) return call.push_nil();
  return call.push((*last).*Member);
}

int state(Call& call) {
  const TrainState train = session(call).state().train;
  return call.push(Json{{"step", train.step},
                        {"tokens", train.tokens},
                        {"samples", train.samples},
                        {"epoch", train.data.epoch},
                        {"skipped", train.skipped}});
}

int frac(Call& call) {
  const auto total = static_cast<double>(session(call).facts().run.total_steps);
  return call.push(total == 0 ? 0.0 : static_cast<double>(session(call).state().train.step) / total);
}

/// Returns why a run takes no further step.
std::string end_reason(const RunInfo& run, const SessionState& now) {
  if (!now.stop_reason.empty()) return now.stop_reason;
  if (now.train.step >= run.total_steps)
    return fmt::format("the run has ended: max_duration is {} steps; build it again with a longer one",
                       run.total_steps);
  if (run.until_step && now.train.step >= *run.until_step)
    return fmt::format("the run ends after step {} (--until)", *run.until_step);
  return "the run was interrupted";
}

/// `wanted` is the number of steps requested; 0 when unknown.
int push_steps(Call& call, std::vector<StepMetrics> list, int64_t wanted) {
  const SessionState now = session(call).state();
  const RunInfo& run = session(call).facts().run;
  const bool is_short = static_cast<int64_t>(list.size()) < wanted;
  return call.push_own(steps_class(), std::make_shared<Steps>(Steps{
                                          std::move(list), run.total_steps, now.train.step, ref(call).unicode,
                                          now.lr_pin, is_short ? end_reason(run, now) : ""}));
}

int step(Call& call) {
  const int64_t wanted = call.integer(1, 1);
  return push_steps(call, session(call).step(wanted), wanted);
}

int run(Call& call) {
  session(call).run_for(call.duration(1));
  const auto last = session(call).state().last;
  return push_steps(call, last ? std::vector<StepMetrics>{*last} : std::vector<StepMetrics>{}, 0);
}

/// Returns the figures as JSON numbers, since Lua has NaN and inf itself.
Json figures_of(const EvalResult& result) {
  Json json = {{"loss", result.loss},
               {"perplexity", result.perplexity},
               {"tokens", result.tokens},
               {"seconds", result.seconds}};
  if (const auto bits = result.bits_per_byte()) json["bits_per_byte"] = *bits;
  return json;
}

int evaluate(Call& call) {
  const std::string set = call.text(1, "");
  const auto results = session(call).evaluate(set);
  if (!results) return call.push_nil();
  Json figures = figures_of(total_of(*results));
  if (set.empty())
    for (const auto& [name, result] : *results) figures[name] = figures_of(result);
  return call.push(figures);
}

int save(Call& call) { return call.push(session(call).save().path); }

int stop(Call& call) {
  session(call).save();
  ref(call).close(fmt::format("stopped: {}", call.text(1, "by request")));
  return 0;
}

int close(Call& call) {
  ref(call).close("closed");
  return 0;
}

int trainer_text(Call& call) {
  const SessionFacts& facts = session(call).facts();
  const SessionState now = session(call).state();
  const std::string loss = now.last ? fmt::format("  loss {}", metric_text(now.last->loss)) : "";
  return call.push(fmt::format("trainer {}  {}/{} ba{}  {} parameters  {}", facts.run.run_name,
                               now.train.step, facts.run.total_steps, loss, facts.run.num_params,
                               facts.run.run_dir));
}

Steps& steps(Call& call) { return call.self<Steps>(); }

template <auto Member>
int of_last(Call& call) {
  if (steps(call).list.empty()) return call.push_nil();
  return call.push(steps(call).list.back().*Member);
}

int losses(Call& call) {
  lua_createtable(call.L, static_cast<int>(steps(call).list.size()), 0);
  for (size_t i = 0; i < steps(call).list.size(); ++i) {
    lua_pushnumber(call.L, steps(call).list[i].loss);
    lua_rawseti(call.L, -2, static_cast<int>(i) + 1);
  }
  return 1;
}

std::string pin_text(const Steps& all) {
  if (!all.lr_pin) return "";
  return fmt::format(" (schedule: {}; pinned by {}, cmd.set_lr(nil) releases)",
                     short_text(all.lr_pin->scheduled), all.lr_pin->by);
}

int steps_text(Call& call) {
  const Steps& all = steps(call);
  if (all.list.empty())
    return call.push(fmt::format("  {}/{} ba  no step was run{}{}", all.step, all.total_steps,
                                 all.reason.empty() ? "" : ": ", all.reason));
  const StepMetrics& first = all.list.front();
  const StepMetrics& last = all.list.back();
  const char* arrow = all.unicode ? "→" : "->";
  std::string loss = metric_text(last.loss);
  if (all.list.size() > 1) loss = fmt::format("{} {} {}", metric_text(first.loss), arrow, loss);
  double seconds = 0;
  for (const StepMetrics& one : all.list) seconds += one.step_s;
  std::string text =
      fmt::format("  {}/{} ba  loss {}  lr {}{}  grad {}  {} s/ba  {} tok/s", last.step, all.total_steps,
                  loss, short_text(last.lr), pin_text(all), short_text(last.grad_norm),
                  short_text(seconds / static_cast<double>(all.list.size())), human_count(last.tokens_per_s));
  if (last.mfu) text += fmt::format("  {} mfu", percent_text(*last.mfu));
  if (!all.reason.empty())
    text += fmt::format("\n  {} of the steps were run: {}", all.list.size(), all.reason);
  if (all.list.size() < 3) return call.push(text);
  std::vector<double> curve;
  for (const StepMetrics& one : all.list) curve.push_back(one.loss);
  return call.push(fmt::format("{}\n  loss {}  {} … {}", text, sparkline(curve, kSparkColumns, all.unicode),
                               metric_text(first.loss), metric_text(last.loss)));
}

}  // namespace

const Class& trainer_class() {
  using Kind = Arg::Kind;
  static const Class object = {
      .name = "trainer",
      .doc = "The open run: train it, save it, inspect it.",
      .fields = {{"state", "table", "step, tokens, samples, epoch and skipped so far.", state},
                 {"tokens", "integer", "Tokens seen.",
                  [](Call& c) { return c.push(session(c).state().train.tokens); }},
                 {"epoch", "integer", "From 0.",
                  [](Call& c) { return c.push(session(c).state().train.data.epoch); }},
                 {"frac", "number", "Fraction of the run that is done.", frac},
                 {"max_steps", "integer", "Steps of the whole run.",
                  [](Call& c) { return c.push(session(c).facts().run.total_steps); }},
                 {"max_duration", "string", "As in the recipe.",
                  [](Call& c) { return c.push(session(c).facts().recipe.at("max_duration")); }},
                 {"loss", "number?", "Of the newest step.", newest<&StepMetrics::loss>},
                 {"lr", "number?", "Of the newest step.", newest<&StepMetrics::lr>},
                 {"grad_norm", "number?", "Of the newest step, before clipping.",
                  newest<&StepMetrics::grad_norm>},
                 {"throughput", "number?", "Tokens per second over the last steps.",
                  newest<&StepMetrics::tokens_per_s>},
                 {"mfu", "number?", "Share of the device's peak; nil for an unknown device.",
                  newest<&StepMetrics::mfu>},
                 {"name", "string", "Name of the run.",
                  [](Call& c) { return c.push(session(c).facts().run.run_name); }},
                 {"dir", "string", "Its folder.",
                  [](Call& c) { return c.push(session(c).facts().run.run_dir); }},
                 {"device", "string", "What it trains on.",
                  [](Call& c) { return c.push(session(c).facts().run.device); }}},
      .methods =
          {{"step",
            "tycho.run.Steps",
            "Runs optimizer steps; evaluates and saves only on command.",
            {{"n", Kind::kInteger, "Number of them; default 1.", true, 1}},
            step,
            true},
           {"run",
            "tycho.run.Steps",
            "Continues training like `tycho run`: evaluates and saves when due.",
            {{"duration", Kind::kDuration, "\"100ba\", \"1ep\", \"1e6tok\", \"10%\".", false}},
            run,
            true},
           {"eval",
            "table?",
            "Gives loss, perplexity, bits_per_byte, tokens and seconds of all eval_data, and of each set.",
            {{"set", Kind::kText,
              "The name of one set, to evaluate only that one; ctx.eval does not show its numbers.", true}},
            evaluate,
            true},
           {"save",
            "string",
            "Saves a checkpoint, waits until it is durable, and returns its folder.",
            {},
            save,
            true},
           {"stop",
            "",
            "Saves, then closes.",
            {{"reason", Kind::kText, "Recorded with the run.", true}},
            stop,
            true},
           {"close", "", "Closes the run without saving and frees its memory.", {}, close, true}},
      .text = trainer_text};
  return object;
}

const Class& steps_class() {
  static const Class object = {
      .name = "steps",
      .doc = "What trainer:step did; numbers are those of its last step.",
      .fields = {{"n", "integer", "Steps done.",
                  [](Call& c) { return c.push(static_cast<int64_t>(steps(c).list.size())); }},
                 {"step", "integer", "The run's step after them.",
                  [](Call& c) { return c.push(steps(c).step); }},
                 {"reason", "string?", "Why fewer steps were run than asked for; nil when all were.",
                  [](Call& c) { return steps(c).reason.empty() ? c.push_nil() : c.push(steps(c).reason); }},
                 {"loss", "number", "Mean over the tokens of the step.", of_last<&StepMetrics::loss>},
                 {"lr", "number", "Learning rate.", of_last<&StepMetrics::lr>},
                 {"grad_norm", "number", "Before clipping.", of_last<&StepMetrics::grad_norm>},
                 {"tokens_per_s", "number", "Tokens per second.", of_last<&StepMetrics::tokens_per_s>},
                 {"seconds", "number", "Of the last step.", of_last<&StepMetrics::step_s>},
                 {"mfu", "number?", "Share of the device's peak.", of_last<&StepMetrics::mfu>},
                 {"losses", "number[]", "Of every step.", losses}},
      .methods = {},
      .text = steps_text};
  return object;
}

}  // namespace tycho
