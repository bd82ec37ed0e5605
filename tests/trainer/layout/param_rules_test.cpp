// Groups: who gets what, and what is wrong with a group.
#include "trainer/layout/param_rules.h"

#include <gtest/gtest.h>

#include "trainer/base/error.h"
#include "trainer/layout/model_layout.h"

namespace tycho {
namespace {

std::vector<UnitSpec> llama() {
  ModelConfig config;
  LlamaConfig model;
  model.width = 8, model.layers = 2, model.heads = 2, model.ffn_width = 16, model.vocab_size = 12;
  config.value = model;
  return model_layout(config).units;
}

ParamGroupConfig group(const std::string& match) { return {.match = match}; }

std::string problems_of(const std::vector<ParamGroupConfig>& groups, const OptimizerConfig& optimizer = {}) {
  std::string text;
  for (const ConfigProblem& problem : param_group_problems(optimizer, groups, llama()))
    text += problem.path + ": " + problem.message + "\n";
  return text;
}

/// "name=value" of the parameters of the first block and of the ends that `read` finds.
template <class Read>
std::vector<std::string> names_where(const ParamRules& rules, const Read& read) {
  std::vector<std::string> names;
  const std::vector<UnitSpec> units = llama();
  for (size_t u = 0; u < units.size(); ++u)
    for (size_t i = 0; u != 2 && i < units[u].params.size(); ++i)
      if (read(rules[u][i])) names.push_back(units[u].params[i].name);
  return names;
}
using Names = std::vector<std::string>;

TEST(ParamRulesTest, MasksChooseWhatDecays) {
  const auto decaying = [](DecayMask mask) {
    const OptimizerConfig adamw{AdamWConfig{.weight_decay = 0.1, .decay_mask = mask}};
    return names_where(param_rules(adamw, {}, llama()),
                       [](const ParamRule& r) { return r.weight_decay > 0; });
  };
  const std::string block = "model.layers.0.";
  Names hidden;
  for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                           "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
    hidden.push_back(block + name + ".weight");
  EXPECT_EQ(decaying(DecayMask::kHidden), hidden);
  Names matrices = hidden;
  matrices.insert(matrices.begin(), "model.embed_tokens.weight");
  matrices.push_back("lm_head.weight");
  EXPECT_EQ(decaying(DecayMask::kMatrices), matrices);
  EXPECT_EQ(decaying(DecayMask::kAll).size(), matrices.size() + 3);
}

TEST(ParamRulesTest, TheFirstMatchWins) {
  ParamGroupConfig first = group("q_proj"), second = group("self_attn");
  first.lr_scale = 2, second.lr = 0.5;
  const OptimizerConfig adamw{AdamWConfig{.lr = 0.25}};
  const ParamRules rules = param_rules(adamw, {first, second}, llama());
  EXPECT_EQ(names_where(rules, [](const ParamRule& r) { return r.lr_scale == 2; }),
            (Names{"model.layers.0.self_attn.q_proj.weight", "model.layers.0.self_attn.k_proj.weight",
                   "model.layers.0.self_attn.v_proj.weight", "model.layers.0.self_attn.o_proj.weight"}));
  second.lr = 0.125;
  EXPECT_EQ(names_where(param_rules(adamw, {first, second}, llama()),
                        [](const ParamRule& r) { return r.lr_scale == 2; }),
            Names{"model.layers.0.self_attn.q_proj.weight"});
}

TEST(ParamRulesTest, MuonLeavesEmbeddingsHeadAndNormsToAdamW) {
  const OptimizerConfig muon{MuonConfig{.lr = 0.02, .adamw_lr = 0.005}};
  const ParamRules rules = param_rules(muon, {}, llama());
  EXPECT_EQ(names_where(rules, [](const ParamRule& r) { return r.lr_scale == 0.25; }),
            (Names{"model.embed_tokens.weight", "model.layers.0.input_layernorm.weight",
                   "model.layers.0.post_attention_layernorm.weight", "model.norm.weight", "lm_head.weight"}));
  using Specs = std::vector<StateSpec>;
  EXPECT_EQ(state_specs(muon, rules[1][1], llama()[1].params[1]), Specs{{"momentum_buffer"}});
  EXPECT_EQ(state_specs(muon, rules[0][0], llama()[0].params[0]), (Specs{{"exp_avg"}, {"exp_avg_sq"}}));
}

TEST(ParamRulesTest, AGroupThatMatchesNothingNamesWhatThereIs) {
  const std::string text = problems_of({group("qproj")});
  EXPECT_NE(text.find("param_groups[1].match: \"qproj\" matches no parameter; did you mean \"q_proj\""),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("model.layers.*.self_attn.q_proj.weight"), std::string::npos) << text;
  EXPECT_THROW(param_rules({}, {group("qproj")}, llama()), Error);
}

TEST(ParamRulesTest, InvalidKeysOfAGroupAreAnError) {
  EXPECT_EQ(problems_of({group("norm"), group("layernorm")}),
            "param_groups[2].match: earlier groups already have all 4 parameters that \"layernorm\" matches; "
            "the first match wins, so move it up\n");
  EXPECT_NE(problems_of({group("q(")}).find("is not a regular expression"), std::string::npos);
  ParamGroupConfig both = group("norm");
  both.lr = 1, both.lr_scale = 2;
  EXPECT_EQ(problems_of({both}), "param_groups[1].lr_scale: lr is given too; choose one of them\n");
  ParamGroupConfig betas = group("norm");
  betas.betas = {{0.1, 0.2}};
  EXPECT_EQ(problems_of({betas}, OptimizerConfig{SgdConfig{}}), "param_groups[1].betas: sgd has no betas\n");
  ParamGroupConfig frozen = group(".");
  frozen.freeze = true;
  EXPECT_EQ(problems_of({frozen}), "param_groups: all parameters are frozen: nothing is left to train\n");
}

TEST(ParamRulesTest, UnderAdaptersOnlyTheseAreTrained) {
  ModelConfig config{LlamaConfig{.width = 8, .layers = 1, .heads = 2, .ffn_width = 16, .vocab_size = 12}};
  config.lora = {.rank = 2, .targets = {"q_proj"}};
  const std::vector<UnitSpec> units = model_layout(config).units;
  const OptimizerConfig muon{MuonConfig{.lr = 0.02, .adamw_lr = 0.005}};
  const ParamRules rules = param_rules(muon, {}, units);
  for (size_t u = 0; u < units.size(); ++u)
    for (const ParamRule& rule : rules[u]) {
      EXPECT_EQ(rule.frozen, units[u].base);
      EXPECT_TRUE(rule.frozen || rule.hidden_matrix) << "adapters are matrices of a block";
    }
  ParamGroupConfig frozen = group("lora_");
  frozen.freeze = true;
  const std::vector<ConfigProblem> problems = param_group_problems({}, {frozen}, units);
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].message, "all parameters are frozen: nothing is left to train");
}

}  // namespace
}  // namespace tycho
