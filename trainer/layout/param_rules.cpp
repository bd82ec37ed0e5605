// Matches groups once per parameter; problems name parameters by pattern.
#include "trainer/layout/param_rules.h"

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/base/nearest.h"
#include "trainer/base/regex.h"
#include "trainer/layout/adapters.h"

namespace tycho {
namespace {

constexpr size_t kNamesShown = 12;

// The group that has a parameter, or -1.
int group_of(const std::vector<Regex>& patterns, const std::string& name) {
  for (size_t i = 0; i < patterns.size(); ++i)
    if (patterns[i].is_found_in(name)) return static_cast<int>(i);
  return -1;
}

// Invalid patterns match nothing and are reported.
std::vector<Regex> compile(const std::vector<ParamGroupConfig>& groups,
                           std::vector<ConfigProblem>* problems) {
  std::vector<Regex> patterns;
  for (size_t i = 0; i < groups.size(); ++i) {
    const Regex& pattern = patterns.emplace_back(groups[i].match);
    if (!pattern.problem().empty())
      problems->push_back(
          {fmt::format("param_groups[{}].match", i + 1),
           fmt::format("\"{}\" is not a regular expression: {}", groups[i].match, pattern.problem())});
  }
  return patterns;
}

bool decays(DecayMask mask, const ParamSpec& param, bool hidden_matrix) {
  return mask == DecayMask::kAll || (mask == DecayMask::kMatrices ? param.decay : hidden_matrix);
}

ParamRule default_rule(const OptimizerConfig& optimizer, const ParamSpec& param, bool inside) {
  ParamRule rule;
  rule.hidden_matrix = inside && param.shape.size() == 2;
  rule.betas = betas_of(optimizer).value_or(rule.betas);
  std::visit(
      [&](const auto& kind) {
        if (decays(kind.decay_mask, param, rule.hidden_matrix)) rule.weight_decay = kind.weight_decay;
        if constexpr (requires { kind.adamw_lr; })
          if (!rule.hidden_matrix) rule.lr_scale = kind.adamw_lr.value_or(kind.lr) / kind.lr;
      },
      optimizer.value);
  return rule;
}

void apply(const OptimizerConfig& optimizer, const ParamGroupConfig& group, ParamRule& rule) {
  const double lr = std::visit([](const auto& kind) { return kind.lr; }, optimizer.value);
  rule.frozen |= group.freeze;
  if (group.lr) rule.lr_scale = *group.lr / lr;
  if (group.lr_scale) rule.lr_scale *= *group.lr_scale;
  rule.weight_decay = group.weight_decay.value_or(rule.weight_decay);
  rule.betas = group.betas.value_or(rule.betas);
}

void check_values(const OptimizerConfig& optimizer, const ParamGroupConfig& group, const std::string& path,
                  std::vector<ConfigProblem>& problems) {
  if (group.lr && group.lr_scale)
    problems.push_back({path + ".lr_scale", "lr is given too; choose one of them"});
  if (group.betas && !betas_of(optimizer))
    problems.push_back({path + ".betas", fmt::format("{} has no betas", optimizer.kind())});
  if (group.freeze && (group.lr || group.lr_scale || group.weight_decay || group.betas))
    problems.push_back(
        {path + ".freeze", "frozen parameters have no other settings; keep only match and freeze"});
}

// "model.layers.3.mlp.up_proj.weight" -> "model.layers.*.mlp.up_proj.weight".
std::string without_numbers(const std::string& name) {
  static const Regex number("\\.[0-9]+\\.");
  return number.replaced_in(name, ".*.");
}

// Names close to a pattern, and the existing names.
std::string known_names(const std::string& pattern, const std::vector<UnitSpec>& units) {
  std::vector<std::string> names, words;
  const auto add = [](std::vector<std::string>& list, const std::string& one) {
    if (std::find(list.begin(), list.end(), one) == list.end()) list.push_back(one);
  };
  for (const UnitSpec& unit : units)
    for (const ParamSpec& param : unit.params) {
      add(names, without_numbers(param.name));
      add(words, param.name);
      for (const char* separators : {".", "._"})
        for (size_t begin = 0, end; begin < param.name.size(); begin = end + 1) {
          end = std::min(param.name.find_first_of(separators, begin), param.name.size());
          add(words, param.name.substr(begin, end - begin));
        }
    }
  std::string text = did_you_mean(pattern, words);
  text += text.empty() ? "; the parameters are" : " The parameters are";
  for (size_t i = 0; i < std::min(names.size(), kNamesShown); ++i) text += "\n    " + names[i];
  return text + (names.size() > kNamesShown ? "\n    ..." : "");
}

}  // namespace

std::vector<ConfigProblem> param_group_problems(const OptimizerConfig& optimizer,
                                                const std::vector<ParamGroupConfig>& groups,
                                                const std::vector<UnitSpec>& units) {
  std::vector<ConfigProblem> problems;
  const std::vector<Regex> patterns = compile(groups, &problems);
  if (!problems.empty()) return problems;
  std::vector<int> taken(groups.size()), found(groups.size());
  bool trains = false;
  for (const UnitSpec& unit : units)
    for (const ParamSpec& param : unit.params) {
      const int group = group_of(patterns, param.name);
      if (!unit.base) trains |= group < 0 || !groups[static_cast<size_t>(group)].freeze;
      if (group >= 0) ++taken[static_cast<size_t>(group)];
      for (size_t i = 0; i < groups.size(); ++i) found[i] += patterns[i].is_found_in(param.name);
    }
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::string path = fmt::format("param_groups[{}]", i + 1);
    check_values(optimizer, groups[i], path, problems);
    if (found[i] == 0)
      problems.push_back({path + ".match", fmt::format("\"{}\" matches no parameter{}", groups[i].match,
                                                       known_names(groups[i].match, units))});
    else if (taken[i] == 0)
      problems.push_back({path + ".match", fmt::format("earlier groups already have all {} parameters that "
                                                       "\"{}\" matches; the first match wins, so move it up",
                                                       found[i], groups[i].match)});
  }
  if (!trains) problems.push_back({"param_groups", "all parameters are frozen: nothing is left to train"});
  return problems;
}

ParamRules param_rules(const OptimizerConfig& optimizer, const std::vector<ParamGroupConfig>& groups,
                       const std::vector<UnitSpec>& units) {
  std::string problems;
  if (!groups.empty())
    for (const ConfigProblem& problem : param_group_problems(optimizer, groups, units))
      problems += fmt::format("\n  {}: {}", problem.path, problem.message);
  if (!problems.empty()) fail(ExitCode::kRecipe, "[param_groups]{}", problems);
  std::vector<ConfigProblem> none;
  const std::vector<Regex> patterns = compile(groups, &none);
  ParamRules rules;
  for (size_t i = 0; i < units.size(); ++i) {
    rules.emplace_back();
    for (const ParamSpec& param : units[i].params) {
      ParamRule rule = default_rule(optimizer, param, is_of_block(units, i));
      rule.frozen = units[i].base;
      const int group = group_of(patterns, param.name);
      if (group >= 0) apply(optimizer, groups[static_cast<size_t>(group)], rule);
      rules.back().push_back(rule);
    }
  }
  return rules;
}

std::vector<UnitSpec> with_frozen(std::vector<UnitSpec> units, const ParamRules& rules) {
  for (size_t u = 0; u < units.size(); ++u)
    for (size_t i = 0; i < units[u].params.size(); ++i) units[u].params[i].frozen = rules[u][i].frozen;
  return units;
}

std::vector<StateSpec> state_specs(const OptimizerConfig& optimizer, const ParamRule& rule,
                                   const ParamSpec& param) {
  if (rule.frozen) return {};
  return std::visit(
      [&](const auto& kind) {
        if constexpr (requires { kind.state_specs(param.whole_shape(), rule.hidden_matrix); }) {
          return kind.state_specs(param.whole_shape(), rule.hidden_matrix);
        } else {
          std::vector<StateSpec> specs;
          for (std::string& name : kind.state_names(rule.hidden_matrix)) specs.push_back({std::move(name)});
          return specs;
        }
      },
      optimizer.value);
}

}  // namespace tycho
