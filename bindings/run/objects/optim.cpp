// The Lua objects `opt` and `sched`.
#include "bindings/run/session_objects.h"
#include "trainer/metrics/format.h"
#include "trainer/metrics/plot.h"
#include "trainer/recipe/ema_steps.h"
#include "trainer/recipe/optimizer_numbers.h"

namespace tycho {
namespace {

constexpr int kTableRows = 11;

/// Pushes a field of the optimizer's config; nil when its kind has none of that name.
int config_field(Call& call, const char* name) {
  const Json config = session(call).optimizer().config;
  return config.contains(name) ? call.push(config.at(name)) : call.push_nil();
}

int groups(Call& call) {
  Json list = Json::array();
  for (const OptimizerGroup& group : session(call).optimizer().groups)
    list.push_back({{"lr_scale", group.lr_scale},
                    {"weight_decay", group.weight_decay},
                    {"betas", group.betas},
                    {"frozen", group.frozen},
                    {"params", group.params}});
  return call.push(list);
}

int grad_norm(Call& call) {
  const auto last = session(call).state().last;
  return last ? call.push(last->grad_norm) : call.push_nil();
}

int opt_text(Call& call) {
  const OptimizerState now = session(call).optimizer();
  std::string text = fmt::format("opt {}  lr {}  clip {}", now.config.at("kind").get<std::string>(),
                                 short_text(now.lr), short_text(now.clip_norm));
  for (const OptimizerGroup& group : now.groups)
    text += fmt::format("\n  {} parameters  lr x {}  weight_decay {}{}", group.params.size(),
                        short_text(group.lr_scale), short_text(group.weight_decay),
                        group.frozen ? "  frozen" : "");
  return call.push(text);
}

/// Pushes a number of the optimizer's config, such as one of a kind that the recipe defines. Refuses a
/// command's name as a member of opt, and names the command to use.
int steer(Call& call) {
  const std::string key = call.text(1);
  const Json config = session(call).optimizer().config;
  if (const auto value = config.find(key); value != config.end() && is_number_or_list(*value))
    return call.push(*value);
  for (const CommandSpec& spec : all_commands())
    if (key == spec.name)
      throw ScriptError(
          "E_NAME", fmt::format("opt:{}: opt is read-only", key),
          fmt::format("use cmd.{}: it takes effect at the next step boundary, on all ranks", spec.usage));
  return call.push_nil();
}

/// Pushes the recipe's ema, or nil when it has no average.
int ema(Call& call) {
  const Json& recipe = session(call).facts().recipe;
  return uses_ema(recipe) ? call.push(recipe.at("ema")) : call.push_nil();
}

std::string sched_kind(Call& call) { return session(call).facts().recipe.at("scheduler").at("kind"); }

int table(Call& call) {
  const int64_t rows = call.integer(1, kTableRows), total = session(call).facts().run.total_steps;
  Json list = Json::array();
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t step = rows == 1 ? 0 : (total - 1) * i / (rows - 1);
    list.push_back({{"step", step}, {"lr", session(call).lr_at(step)}});
  }
  return call.push(list);
}

int sched_text(Call& call) {
  const int64_t total = session(call).facts().run.total_steps;
  std::vector<double> curve;
  for (int64_t i = 0; i < 48; ++i) curve.push_back(session(call).lr_at((total - 1) * i / 47));
  return call.push(fmt::format("sched {}  {} ba\n  lr {}  {} ... {}", sched_kind(call), total,
                               sparkline(curve, 24, call.self<SessionRef>().unicode),
                               short_text(curve.front()), short_text(curve.back())));
}

}  // namespace

const Class& opt_class() {
  static const Class object = {
      .name = "opt",
      .doc = "The optimizer as the next step will use it; read-only.",
      .fields =
          {{"kind", "string", "adamw, lion, ...", [](Call& c) { return config_field(c, "kind"); }},
           {"lr", "number", "Learning rate of the next step.",
            [](Call& c) { return c.push(session(c).optimizer().lr); }},
           {"peak_lr", "number", "The recipe's learning rate, which the schedule scales.",
            [](Call& c) { return config_field(c, "lr"); }},
           {"betas", "number[]?", "Decay of the moments.", [](Call& c) { return config_field(c, "betas"); }},
           {"eps", "number?", "Added to the square root of the second moment.",
            [](Call& c) { return config_field(c, "eps"); }},
           {"weight_decay", "number", "Weight decay: each step removes lr x this share of a weight.",
            [](Call& c) { return config_field(c, "weight_decay"); }},
           {"clip", "number", "Maximum gradient norm; 0 for no clipping.",
            [](Call& c) { return c.push(session(c).optimizer().clip_norm); }},
           {"ema", "table?",
            "The recipe's moving average of the weights: half_life or decay, start, every, evaluate; "
            "nil when none is kept.",
            ema},
           {"groups", "table[]",
            "Groups of parameters with the same settings: lr_scale, weight_decay, betas, frozen, params.",
            groups},
           {"grad_norm", "number?", "Of the newest step, before clipping.", grad_norm}},
      .methods = {},
      .text = opt_text,
      .index = steer,
      .hint =
          "opt is read-only: use cmd.set_lr(3e-4), cmd.set_clip(1), ... at the prompt, ctx.cmd in a "
          "t.control callback; they take effect at the next step boundary"};
  return object;
}

const Class& sched_class() {
  using Kind = Arg::Kind;
  static const Class object = {
      .name = "sched",
      .doc = "The learning rate over the run.",
      .fields = {{"kind", "string", "cosine, linear, ...", [](Call& c) { return c.push(sched_kind(c)); }}},
      .methods = {{"at",
                   "number",
                   "Learning rate of the next step after `step` steps.",
                   {{"step", Kind::kInteger, "From 0.", false, 0}},
                   [](Call& c) { return c.push(session(c).lr_at(c.integer(1))); }},
                  {"table",
                   "table[]",
                   "{ step, lr } over the whole run.",
                   {{"rows", Kind::kInteger, "Default 11.", true, 1, 100000}},
                   table}},
      .text = sched_text};
  return object;
}

}  // namespace tycho
