// What does not hold in a model's config: heads, sizes, and keys that would do nothing.
#include "trainer/families/check.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

template <class Family>
std::vector<ConfigProblem> checked(const Family& model) {
  ConfigProblems problems;
  check(ModelConfig{{model}}, problems);
  return problems.take();
}

/// "path: message" of every problem, one per line.
template <class Family>
std::string problems_of(const Family& model) {
  std::string text;
  for (const ConfigProblem& problem : checked(model))
    text += (text.empty() ? "" : "\n") + problem.path + ": " + problem.message;
  return text;
}

/// The paths alone.
template <class Family>
std::vector<std::string> paths_of(const Family& model) {
  std::vector<std::string> paths;
  for (const ConfigProblem& problem : checked(model)) paths.push_back(problem.path);
  return paths;
}
using Paths = std::vector<std::string>;

MptConfig with_init(const MptInitConfig& init) { return {.init = init}; }

TEST(ModelRules, HoldForTheDefaults) {
  EXPECT_EQ(problems_of(LlamaConfig{}), "");
  EXPECT_EQ(problems_of(MptConfig{}), "");
  EXPECT_EQ(problems_of(Gpt2Config{}), "");
}

TEST(ModelRules, RejectHeadsThatDoNotDivide) {
  EXPECT_EQ(problems_of(LlamaConfig{.heads = 8, .kv_heads = 3}),
            "model.heads: 8 is not a multiple of kv_heads = 3; kv_heads = 2 would work");
  EXPECT_EQ(
      problems_of(LlamaConfig{.heads = 6}),
      "model.heads: width = 256 is not a multiple of heads = 6; heads = 4 would work, or set head_width");
  EXPECT_EQ(problems_of(LlamaConfig{.width = 24, .heads = 8}),
            "model.heads: width / heads = 3 is odd, but rotary positions rotate pairs; set head_width = 4");
  EXPECT_EQ(problems_of(LlamaConfig{.heads = 6, .head_width = 64}), "");
}

TEST(ModelRules, RejectSizesBeyondWhatCanBePlanned) {
  const int64_t all = (int64_t{1} << 53) - 1;
  EXPECT_EQ(problems_of(LlamaConfig{.max_seq_len = all}),
            "model.max_seq_len: 9007199254740991 is more than Tycho can plan; write at most 16777216");
  EXPECT_EQ(paths_of(MptConfig{.max_seq_len = all}), Paths{"model.max_seq_len"});
  EXPECT_EQ(paths_of(Gpt2Config{.max_seq_len = all}), Paths{"model.max_seq_len"});
  EXPECT_EQ(paths_of(LlamaConfig{.width = all, .layers = all}), (Paths{"model.width", "model.layers"}));
}

TEST(ModelRules, RejectEqualFrequencyFactors) {
  const RopeScalingConfig same = {.type = RopeScaling::kLlama3, .low_freq_factor = 4, .high_freq_factor = 4};
  const std::string text =
      "model.rope_scaling.low_freq_factor: 4 is not below high_freq_factor = 4; Llama 3.1 has 1 and 4";
  EXPECT_EQ(problems_of(LlamaConfig{.rope_scaling = same}), text);
  EXPECT_EQ(problems_of(MptConfig{.positions = PositionKind::kRope, .rope_scaling = same}), text);
  EXPECT_EQ(problems_of(LlamaConfig{.head_width = 2, .rope_scaling = {.type = RopeScaling::kDynamic}}),
            "model.rope_scaling.type: dynamic needs a head width above 2, got 2");
}

TEST(ModelRules, RefuseRopeScalingThatDoesNothing) {
  EXPECT_EQ(problems_of(LlamaConfig{.rope_scaling = {.factor = 4}}),
            "model.rope_scaling.factor: has no effect while rope_scaling.type is \"none\"; remove it");
  EXPECT_EQ(paths_of(LlamaConfig{.rope_scaling = {.type = RopeScaling::kLinear, .low_freq_factor = 2}}),
            Paths{"model.rope_scaling.low_freq_factor"});
  EXPECT_EQ(
      paths_of(LlamaConfig{
          .rope_scaling = {.type = RopeScaling::kDynamic, .high_freq_factor = 2, .original_max_seq_len = 4}}),
      Paths{"model.rope_scaling.high_freq_factor"});
  EXPECT_EQ(paths_of(LlamaConfig{.rope_scaling = {.type = RopeScaling::kLinear, .original_max_seq_len = 4}}),
            Paths{"model.rope_scaling.original_max_seq_len"});
  EXPECT_EQ(paths_of(MptConfig{.rope_theta = 3, .rope_scaling = {.type = RopeScaling::kLinear}}),
            (Paths{"model.rope_theta", "model.rope_scaling"}));
}

RopeScalingConfig yarn() { return {.type = RopeScaling::kYarn, .factor = 4, .original_max_seq_len = 4096}; }

TEST(ModelRules, AcceptYarnAndLongrope) {
  RopeScalingConfig scaling = yarn();
  EXPECT_EQ(problems_of(LlamaConfig{.rope_scaling = scaling}), "");
  scaling.beta_fast = 16, scaling.beta_slow = 2, scaling.truncate = false;
  scaling.mscale = scaling.mscale_all_dim = 1;
  EXPECT_EQ(problems_of(LlamaConfig{.rope_scaling = scaling}), "");
  const std::vector<double> divisors(32, 2.0);
  EXPECT_EQ(problems_of(LlamaConfig{.rope_scaling = {.type = RopeScaling::kLongrope,
                                                     .attention_factor = 1.2,
                                                     .short_factor = divisors,
                                                     .long_factor = divisors}}),
            "");
}

TEST(ModelRules, RefuseKeysOfAnotherScaling) {
  EXPECT_EQ(problems_of(LlamaConfig{.rope_scaling = {.truncate = false}}),
            "model.rope_scaling.truncate: has no effect unless rope_scaling.type = \"yarn\"; remove it");
  RopeScalingConfig linear = {.type = RopeScaling::kLinear, .beta_fast = 2, .beta_slow = 2};
  linear.mscale = linear.mscale_all_dim = linear.attention_factor = 1;
  linear.short_factor = linear.long_factor = {1};
  EXPECT_EQ(
      paths_of(LlamaConfig{.rope_scaling = linear}),
      (Paths{"model.rope_scaling.attention_factor", "model.rope_scaling.beta_fast",
             "model.rope_scaling.beta_slow", "model.rope_scaling.mscale", "model.rope_scaling.mscale_all_dim",
             "model.rope_scaling.short_factor", "model.rope_scaling.long_factor"}));
  RopeScalingConfig half = yarn();
  half.mscale = 1;
  EXPECT_EQ(paths_of(LlamaConfig{.rope_scaling = half}), Paths{"model.rope_scaling.mscale"});
  half.mscale_all_dim = half.attention_factor = 1;
  EXPECT_EQ(paths_of(LlamaConfig{.rope_scaling = half}),
            (Paths{"model.rope_scaling.mscale", "model.rope_scaling.mscale_all_dim"}));
}

TEST(ModelRules, RefuseYarnAndLongropeOutOfRange) {
  RopeScalingConfig scaling = yarn();
  scaling.beta_slow = 33;
  EXPECT_EQ(problems_of(LlamaConfig{.rope_theta = 1, .rope_scaling = scaling}),
            "model.rope_scaling.beta_fast: 32 is below beta_slow = 33; 32 and 1 are usual\n"
            "model.rope_theta: 1 is not above 1, which rope_scaling.type = \"yarn\" needs");
  EXPECT_EQ(problems_of(MptConfig{.positions = PositionKind::kRope, .rope_scaling = yarn()}),
            "model.rope_scaling.type: yarn is not known to LLM Foundry's MPT; use t.model.llama");
  EXPECT_EQ(problems_of(LlamaConfig{.rope_scaling = {.type = RopeScaling::kLongrope,
                                                     .original_max_seq_len = 1,
                                                     .short_factor = std::vector<double>(31, 1.0),
                                                     .long_factor = std::vector<double>(32, 1.0)}}),
            "model.rope_scaling.short_factor: has 31 numbers, but 32 pairs are rotated; write one for each\n"
            "model.rope_scaling.original_max_seq_len: 1 is too short for longrope; write 2 or more");
}

TEST(ModelRules, RefuseXposThatDoesNothingOrOverflows) {
  const auto rotary = PositionKind::kRope;
  EXPECT_EQ(problems_of(MptConfig{.positions = rotary, .xpos_scale_base = 512}), "");
  EXPECT_EQ(problems_of(MptConfig{.xpos_scale_base = 512}),
            "model.xpos_scale_base: has no effect unless positions = \"rope\"; remove it");
  EXPECT_EQ(problems_of(MptConfig{
                .positions = rotary, .rope_scaling = {.type = RopeScaling::kLinear}, .xpos_scale_base = 512}),
            "model.xpos_scale_base: cannot be combined with rope_scaling: choose one");
  EXPECT_EQ(
      problems_of(MptConfig{.max_seq_len = 65536, .positions = rotary, .xpos_scale_base = 512}),
      "model.xpos_scale_base: 512 overflows fp32 within max_seq_len = 65536 positions; the minimum is 1024");
  const auto reusing = [](bool nope) {
    MptConfig model{.layers = 2, .positions = PositionKind::kRope, .xpos_scale_base = 512};
    model.blocks.kinds = {{"again", {.nope = nope, .reuse_kv = 1}}};
    model.blocks.order = {"default", "again"};
    return problems_of(model);
  };
  EXPECT_EQ(reusing(false), "");
  EXPECT_EQ(reusing(true),
            "model.blocks.kinds.again.reuse_kv: uses keys with xPos, but its queries are without; set nope "
            "in both or in neither");
}

TEST(ModelRules, RefuseFirstValuesThatDoNothing) {
  EXPECT_EQ(paths_of(with_init({.init_gain = 2})), Paths{"model.init.init_gain"});
  EXPECT_EQ(paths_of(with_init({.init_std = 1})), Paths{"model.init.init_std"});
  EXPECT_EQ(paths_of(with_init({.name = InitScheme::kBaseline})), Paths{"model.init.init_std"});
  EXPECT_EQ(
      paths_of(with_init(
          {.name = InitScheme::kSmall, .fan_mode = FanMode::kFanOut, .init_nonlinearity = GainOf::kTanh})),
      (Paths{"model.init.fan_mode", "model.init.init_nonlinearity"}));
  EXPECT_EQ(paths_of(with_init({.emb_init_std = 1, .emb_init_uniform_lim = 1})),
            Paths{"model.init.emb_init_uniform_lim"});
  EXPECT_EQ(paths_of(with_init({.emb_init_uniform_range = {{2, 1}}})),
            Paths{"model.init.emb_init_uniform_range"});
  EXPECT_EQ(paths_of(with_init({.init_div_is_residual = false, .residual_divisor = 2})),
            Paths{"model.init.residual_divisor"});
  EXPECT_EQ(paths_of(with_init({.name = InitScheme::kNeox, .residual_divisor = 2})),
            Paths{"model.init.residual_divisor"});
  EXPECT_EQ(
      paths_of(with_init({.name = InitScheme::kDefault, .emb_init_std = 2, .init_div_is_residual = false})),
      (Paths{"model.init.init_div_is_residual", "model.init.emb_init_std"}));
  EXPECT_EQ(problems_of(with_init({.init_gain = 0.1, .init_nonlinearity = GainOf::kLeakyRelu})), "");
}

TEST(ModelRules, RefuseFirstValuesBesideWeights) {
  EXPECT_EQ(
      problems_of(LlamaConfig{.init_std = 0.1, .weights = "runs/a"}),
      "model.init_std: has no effect together with weights, which replace the initialisation; remove it");
  EXPECT_EQ(paths_of(LlamaConfig{.init = LlamaInit::kTorchtitan, .weights = "runs/a"}), Paths{"model.init"});
  EXPECT_EQ(paths_of(Gpt2Config{.init_std = 0.1, .weights = "runs/a"}), Paths{"model.init_std"});
  EXPECT_EQ(paths_of(MptConfig{.init = {.name = InitScheme::kSmall}, .weights = "runs/a"}),
            Paths{"model.init"});
}

MptConfig with_blocks(std::vector<std::string> order, std::map<std::string, BlockKindConfig> kinds) {
  return {.layers = 6, .positions = PositionKind::kRope, .blocks = {std::move(order), std::move(kinds)}};
}

TEST(ModelRules, HoldForBlocksThatDiffer) {
  EXPECT_EQ(problems_of(with_blocks({"near", "again", "default"},
                                    {{"near", {.sliding_window = 8}}, {"again", {.reuse_kv = 1}}})),
            "");
  EXPECT_EQ(problems_of(with_blocks({"default", "far"}, {{"far", {.nope = true}}})), "");
}

TEST(ModelRules, RejectAnOrderWithUnknownKindsOrTheWrongLength) {
  const std::map<std::string, BlockKindConfig> near = {{"near", {.sliding_window = 8}}};
  EXPECT_EQ(problems_of(with_blocks({"near", "naer"}, near)),
            "model.blocks.order[2]: \"naer\" is not one of blocks.kinds; did you mean \"near\"?");
  EXPECT_EQ(problems_of(with_blocks({"near", "near", "near", "default"}, near)),
            "model.blocks.order: has 4 blocks, and layers = 6 is not a multiple of it");
  EXPECT_EQ(problems_of(with_blocks({"default"}, near)),
            "model.blocks.kinds.near: is not in blocks.order; add it there or remove it");
  EXPECT_EQ(problems_of(with_blocks({"default"}, {{"default", {.sliding_window = 8}}})),
            "model.blocks.kinds.default: means the model's own settings; choose another name");
}

TEST(ModelRules, RejectReuseOfLaterBlocks) {
  EXPECT_EQ(problems_of(with_blocks({"default", "again"}, {{"again", {.reuse_kv = 2}}})),
            "model.blocks.kinds.again.reuse_kv: needs 2 blocks before its own, but block 2 has 1; put other "
            "kinds first in blocks.order");
  EXPECT_EQ(paths_of(with_blocks({"again"}, {{"again", {.reuse_kv = 1}}})),
            Paths{"model.blocks.kinds.again.reuse_kv"});
  EXPECT_EQ(problems_of(with_blocks({"default", "again"}, {{"again", {.reuse_kv = 1}}})), "");
  EXPECT_EQ(paths_of(with_blocks({"default", "again"}, {{"again", {.reuse_kv_x = 2}}})),
            Paths{"model.blocks.kinds.again.reuse_kv_x"});
  EXPECT_EQ(problems_of(with_blocks({"default", "again"}, {{"again", {.reuse_kv = 1, .reuse_kv_x = 1}}})),
            "model.blocks.kinds.again.reuse_kv_x: cannot be combined with reuse_kv: choose one");
}

TEST(ModelRules, RefuseKindsThatDoNothing) {
  MptConfig nope = with_blocks({"far", "default"}, {{"far", {.nope = true}}});
  nope.positions = PositionKind::kNone;
  EXPECT_EQ(problems_of(nope),
            "model.blocks.kinds.far.nope: has no effect while positions = \"none\"; remove it");
  nope.positions = PositionKind::kLearned;
  EXPECT_EQ(problems_of(nope),
            "model.blocks.kinds.far.nope: learned positions are part of the embeddings, before any block; "
            "set positions = \"rope\" or \"alibi\"");
  EXPECT_EQ(problems_of(with_blocks({"default", "same"}, {{"same", {}}})),
            "model.blocks.kinds.same: is empty; give it a key, or write \"default\" in blocks.order");
}

TEST(ModelRules, RefuseAFloorWithoutAScale) {
  MptConfig model{.temperature_tuning = {.floor_scale = 100}};
  EXPECT_EQ(problems_of(model),
            "model.temperature_tuning.floor_scale: has no effect unless attn_scale is above 0; remove it");
  model.temperature_tuning.attn_scale = 0.1;
  EXPECT_EQ(problems_of(model), "");
  MptConfig kind = with_blocks({"slow"}, {{"slow", {.temperature_tuning = {.floor_scale = 9}}}});
  EXPECT_EQ(paths_of(kind), Paths{"model.blocks.kinds.slow.temperature_tuning.floor_scale"});
  kind.temperature_tuning.attn_scale = 0.1;
  EXPECT_EQ(problems_of(kind), "");
  // A kind takes what it does not say from the model.
  kind.temperature_tuning = {.floor_scale = 100};
  kind.blocks.kinds["slow"].temperature_tuning = {.attn_scale = 0.1};
  EXPECT_EQ(problems_of(kind), "");
}

TEST(ModelRules, RejectTwoWidthsOfTheFeedForward) {
  EXPECT_EQ(problems_of(MptConfig{.expansion_ratio = 3, .ffn_width = 64}),
            "model.expansion_ratio: has no effect together with ffn_width; remove it");
  EXPECT_EQ(paths_of(MptConfig{.width = 8, .heads = 2, .expansion_ratio = 1.3}),
            Paths{"model.expansion_ratio"});
}

}  // namespace
}  // namespace tycho
