// LLM Foundry's optimizer, scheduler and algorithms.
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "bindings/import/systems.h"
#include "trainer/base/duration.h"
#include "trainer/base/error.h"
#include "trainer/base/regex.h"

namespace tycho {
namespace {

using Kind = DocScalar::Kind;

// ---- parameters that are treated apart ----

/// Returns a pattern for parameter names, without the extra "model." that Composer puts before them.
std::optional<std::string> parameter_pattern(Mapper& mapper, const DocEntry& entry) {
  std::string pattern = mapper.text_of(&entry.node);
  static const Regex named("\\^?model(\\.|\\\\\\.)(transformer|lm_head|model)(.|\n)*");
  if (named.matches_all_of(pattern)) {
    const size_t begin = pattern.find('l') + 1;
    pattern =
        (pattern.starts_with('^') ? "^" : "") + pattern.substr(begin + (pattern[begin] == '\\' ? 2 : 1));
  } else if (pattern.starts_with('^')) {
    mapper.problem(
        entry,
        "parameter names begin with model. in LLM Foundry but not here: write the pattern without its ^");
    return std::nullopt;
  }
  return lua_quoted(pattern);
}

/// Returns the fields of a ParamGroupConfig for one group.
std::vector<std::string> group_fields(Mapper& mapper, const DocEntry& entry) {
  std::vector<std::string> fields;
  for (const auto& [key, node] : entry.node.entries) {
    const DocEntry at = {entry.path + "." + key, node};
    if (key == "param_str_match") {
      if (const auto pattern = parameter_pattern(mapper, at))
        fields.insert(fields.begin(), "match = " + *pattern);
    } else if (key == "lr" || key == "weight_decay" || key == "betas") {
      if (const auto value = as_is(mapper, at)) fields.push_back(key + " = " + *value);
    } else {
      mapper.problem(at, "only lr, weight_decay and betas can be set for parameters");
    }
  }
  if (entry.node.find("param_str_match") == nullptr) mapper.problem(entry, "expected param_str_match");
  return fields;
}

/// Adds groups for one regular expression, or a list of them, whose parameters are frozen.
void write_frozen(Mapper& mapper, const DocEntry& entry, std::vector<std::string>& groups) {
  const auto add = [&](const DocEntry& one) {
    if (const auto pattern = parameter_pattern(mapper, one))
      groups.push_back(fmt::format("{{ match = {}, freeze = true }}", *pattern));
  };
  if (entry.node.is_scalar() && mapper.is_null(&entry.node)) return;
  if (!entry.node.is_list()) return add(entry);
  for (size_t i = 0; i < entry.node.items.size(); ++i)
    add({fmt::format("{}.{}", entry.path, i), entry.node.items[i]});
}

/// Writes the groups, frozen ones first: LLM Foundry takes them out before it makes groups.
void write_groups(Mapper& mapper, const DocEntry& optimizer) {
  std::vector<std::string> groups;
  const DocNode* frozen = optimizer.node.find("disable_grad");
  const DocNode* given = optimizer.node.find("param_groups");
  if (frozen != nullptr) write_frozen(mapper, {optimizer.path + ".disable_grad", *frozen}, groups);
  if (given != nullptr && !(given->is_scalar() && mapper.is_null(given))) {
    if (!given->is_list())
      return mapper.problem({optimizer.path + ".param_groups", *given}, "expected a list of groups");
    for (size_t i = 0; i < given->items.size(); ++i) {
      const DocEntry one = {fmt::format("{}.param_groups.{}", optimizer.path, i), given->items[i]};
      groups.push_back(fmt::format("{{ {} }}", fmt::join(group_fields(mapper, one), ", ")));
    }
  }
  if (groups.empty()) return;
  const SourceLocation place = frozen != nullptr ? frozen->place() : given->place();
  mapper.out().open("r.param_groups = {", 0, place);
  for (const std::string& group : groups) mapper.out().write(group + ",", 0, "", place);
  mapper.out().close("}");
}

// ---- optimizer ----

const Rows& optimizer_rows() {
  static const Rows rows = {
      elsewhere("name"),
      to("lr", "lr"),
      to("betas", "betas"),
      to("eps", "eps"),
      to("weight_decay", "weight_decay"),
      only("amsgrad", {"false"}, "is not supported"),
      elsewhere("disable_grad"),
      elsewhere("param_groups"),
  };
  return rows;
}

void map_optimizer(Mapper& mapper, const DocEntry& entry) {
  const DocNode* name = entry.node.find("name");
  const std::string kind = name == nullptr ? "" : mapper.text_of(name);
  if (kind != "decoupled_adamw" && kind != "decoupled_lionw") {
    return mapper.problem(name == nullptr ? entry : DocEntry{"optimizer.name", *name},
                          "Tycho has decoupled_adamw and decoupled_lionw of LLM Foundry's optimizers");
  }
  const DocNode* decay = entry.node.find("weight_decay");
  const bool decays = decay == nullptr ? kind == "decoupled_adamw"
                                       : std::strtod(("0" + mapper.text_of(decay)).c_str(), nullptr) != 0;
  std::vector<std::string> fields;
  if (decays) fields.emplace_back("decay_mask = \"all\"");
  mapper.component(entry, "optimizer", "t.optim." + kind, optimizer_rows(), fields);
  write_groups(mapper, entry);
}

// ---- scheduler ----

/// Names of LLM Foundry's schedules, and of Composer's that its YAML does not reach.
const std::map<std::string, std::string>& schedules() {
  static const std::map<std::string, std::string> kinds = {
      {"constant", "constant"},
      {"constant_with_warmup", "constant"},
      {"cosine", "cosine"},
      {"cosine_annealing", "cosine"},
      {"cosine_with_warmup", "cosine"},
      {"cosine_annealing_with_warmup", "cosine"},
      {"cosine_restarts", "cosine_restarts"},
      {"cosine_annealing_warm_restarts", "cosine_restarts"},
      {"linear", "linear"},
      {"linear_decay_with_warmup", "linear"},
      {"inv_sqrt_with_warmup", "inv_sqrt"},
      {"step", "step"},
      {"multistep", "multistep"},
      {"multistep_with_warmup", "multistep"},
      {"exponential", "exponential"},
      {"polynomial", "polynomial"},
      {"polynomial_with_warmup", "polynomial"}};
  return kinds;
}

/// Returns true when the rate after the end of a constant schedule of Composer differs from the peak.
bool changes_at_its_end(Mapper& mapper) {
  const DocNode* alpha = mapper.root().at("scheduler.alpha");
  return !mapper.is_null(alpha) && std::strtod(mapper.text_of(alpha).c_str(), nullptr) != 1;
}

/// Maps the end of a constant schedule, which has none in Tycho. In Composer the factor is 1 from the end on,
/// which for a schedule with a warm-up must not be before the run's end.
void map_constant_end(Mapper& mapper, const DocEntry& entry) {
  const DocScalar run = mapper.value(mapper.root().find("max_duration")), end = mapper.value(&entry.node);
  if (end.is(Kind::kNull)) return mapper.remark(entry, "the default");
  const auto read = [](const DocScalar& scalar) {
    return Duration::parse(scalar.is(Kind::kInteger) ? scalar.text + "ep" : scalar.text);
  };
  try {
    const Duration length = read(end), whole = read(run);
    const bool whole_run = length.unit == DurationUnit::kFraction && length.value >= 1;
    const bool shorter = length.unit == whole.unit ? length.value < whole.value
                                                   : length.unit == DurationUnit::kFraction && !whole_run;
    const DocNode* name = mapper.root().at("scheduler.name");
    if (shorter && mapper.text_of(name) == "constant_with_warmup")
      return mapper.problem(entry, "is less than max_duration, which Composer rejects: remove it");
    if (shorter && changes_at_its_end(mapper))
      return mapper.problem(entry,
                            "ends before the run, and Composer's factor is 1 from there on: write "
                            "r.scheduler = t.sched.fn(...) into the recipe");
  } catch (const Error&) {
    return mapper.problem(entry, "expected a time such as 100ba, 2ep or 1dur");
  }
  mapper.remark(entry, "the learning rate stays the same");
}

Row schedule_time(const char* key) { return to(key, key, duration_in("ep")); }

const Rows& scheduler_rows() {
  static const Rows rows = {
      elsewhere("name"),
      schedule_time("t_warmup"),
      schedule_time("t_max"),
      schedule_time("t_scale"),
      schedule_time("t_cooldown"),
      schedule_time("step_size"),
      schedule_time("t_0"),
      schedule_time("decay_period"),
      to("milestones", "milestones", durations_in("ep")),
      to("t_mult", "t_mult"),
      to("gamma", "gamma"),
      to("power", "power"),
      to("alpha", "alpha"),
      to("alpha_i", "alpha_i"),
      to("alpha_f", "alpha_f"),
      to("alpha_f_decay", "alpha_f_decay"),
      to("alpha_f_cooldown", "alpha_f_cooldown"),
      to("scale_warmup", "scale_warmup"),
  };
  return rows;
}

void map_scheduler(Mapper& mapper, const DocEntry& entry) {
  const DocNode* name = entry.node.find("name");
  const auto kind = schedules().find(name == nullptr ? "" : mapper.text_of(name));
  if (kind == schedules().end()) {
    std::vector<std::string> known;
    for (const auto& [theirs, ours] : schedules()) known.push_back(theirs);
    return mapper.problem(name == nullptr ? entry : DocEntry{"scheduler.name", *name},
                          fmt::format("expected one of {}", fmt::join(known, ", ")));
  }
  Rows rows = scheduler_rows();
  if (kind->second == "constant")
    for (Row& row : rows)
      if (row.key == "t_max") row = by("t_max", map_constant_end);
  mapper.component(entry, "scheduler", "t.sched." + kind->second, rows, {"compat = \"composer\""});
}

// ---- algorithms ----

/// Maps clipping, one of three kinds; clip.norm is on unless another kind is chosen.
void map_clipping(Mapper& mapper, const DocEntry& entry) {
  const DocNode* type = entry.node.find("clipping_type");
  const std::string way = type == nullptr ? "" : mapper.text_of(type);
  static const std::map<std::string, const char*> kTargets = {
      {"norm", "clip.norm"}, {"value", "clip.value"}, {"adaptive", "clip.adaptive"}};
  const auto target = kTargets.find(way);
  if (target == kTargets.end())
    return mapper.problem(type == nullptr ? entry : DocEntry{entry.path + ".clipping_type", *type},
                          "expected norm, value or adaptive");
  mapper.out().comments_before(entry.node.line);
  mapper.walk(entry, {elsewhere("clipping_type"), to("clipping_threshold", target->second)});
  if (way == "value" && !mapper.is_null(mapper.root().find("fsdp_config")))
    mapper.note(entry,
                "with FSDP, Composer scales all gradients by the largest element instead; here each element "
                "is clamped, as in Composer without FSDP");
}

// ---- ema ----

Rows ema_rows() {
  return {to("half_life", "ema.half_life", duration_in("ba")), to("smoothing", "ema.decay", as_is),
          to("ema_start", "ema.start", duration_in("ba")),
          to("update_interval", "ema.every", duration_in("ba"))};
}

/// Maps EMA. Composer's default half-life applies unless smoothing replaces it; with smoothing, half_life has
/// to be null.
void map_ema(Mapper& mapper, const DocEntry& entry) {
  const DocNode* half_life = entry.node.find("half_life");
  const bool has_smoothing = !mapper.is_null(entry.node.find("smoothing"));
  const bool has_half_life = half_life == nullptr || !mapper.is_null(half_life);
  if (has_smoothing == has_half_life)
    return mapper.problem(
        entry, has_smoothing ? "Composer takes half_life or smoothing, and half_life is 1000ba unless "
                               "it is null: write half_life: null beside smoothing"
                             : "expected half_life or smoothing, and both are null");
  mapper.out().comments_before(entry.node.line);
  if (half_life == nullptr && !has_smoothing) mapper.emit(entry, "ema.half_life", "\"1000ba\"");
  mapper.walk(entry, ema_rows());
  // An update each epoch where the half-life counts those.
  if (!mapper.is_null(entry.node.find("update_interval")) || half_life == nullptr || has_smoothing) return;
  if (mapper.text_of(half_life).ends_with("ep")) mapper.emit(entry, "ema.every", "\"1ep\"");
}

}  // namespace

Row foundry_optimizer_row() { return by("optimizer", map_optimizer, optimizer_rows()); }

Row foundry_scheduler_row() { return by("scheduler", map_scheduler, scheduler_rows()); }

Row foundry_algorithms_row() {
  return group("algorithms", {by("gradient_clipping", map_clipping,
                                 {elsewhere("clipping_type"), elsewhere("clipping_threshold")}),
                              by("ema", map_ema, ema_rows()),
                              left_out("low_precision_layernorm", "norms use the dtype of the model")});
}

}  // namespace tycho
