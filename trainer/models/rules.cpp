// The rules of the model families.
#include "trainer/models/rules.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/nearest.h"

namespace tycho {
namespace {

/// Collects what does not hold.
class Rules {
 public:
  template <class... Args>
  void wrong(const std::string& path, fmt::format_string<Args...> format, Args&&... args) {
    problems_.push_back({path, fmt::format(format, std::forward<Args>(args)...)});
  }
  /// Sizes whose products would not fit into 64 bits, or whose plan would not fit into memory.
  void at_most(const char* path, double value, double limit) {
    if (value > limit) wrong(path, "{} is more than Tycho can plan; write at most {}", value, limit);
  }
  void at_most(const char* path, std::optional<int64_t> value, double limit) {
    at_most(path, static_cast<double>(value.value_or(0)), limit);
  }
  /// Keys that would do nothing are errors: someone meant them.
  void needs(const std::string& path, bool given, bool holds, const char* what) {
    if (given && !holds) wrong(path, "does nothing {}; leave it out", what);
  }
  std::vector<ConfigProblem>& problems() { return problems_; }

 private:
  std::vector<ConfigProblem> problems_;
};

template <class Family>
void check_sizes(const Family& model, Rules& rules) {
  rules.at_most("model.width", model.width, 0x1p20);
  rules.at_most("model.layers", model.layers, 0x1p14);
  rules.at_most("model.heads", model.heads, 0x1p14);
  if constexpr (requires { model.head_width; }) rules.at_most("model.head_width", model.head_width, 0x1p14);
  if constexpr (requires { model.expansion_ratio; })
    rules.at_most("model.expansion_ratio", model.expansion_ratio, 0x1p10);
  rules.at_most("model.ffn_width", std::optional<int64_t>(model.ffn_width), 0x1p22);
  rules.at_most("model.vocab_size", model.vocab_size, 0x1p24);
  rules.at_most("model.max_seq_len", std::optional<int64_t>(model.max_seq_len), 0x1p24);
}

template <class Family>
void check_heads(const Family& model, bool rotary, Rules& rules) {
  const int64_t kv_heads = model.num_kv_heads();
  if (model.heads % kv_heads != 0) {
    rules.wrong("model.heads", "{} is not a multiple of kv_heads = {}; kv_heads = {} would do", model.heads,
                kv_heads, largest_divisor(model.heads, kv_heads));
  }
  bool width_given = false;
  if constexpr (requires { model.head_width; }) width_given = model.head_width.has_value();
  if (!width_given && model.width % model.heads != 0) {
    rules.wrong(
        "model.heads", "width = {} is not a multiple of heads = {}; heads = {} would do{}", model.width,
        model.heads, largest_divisor(model.width, model.heads),
        requires { model.head_width; } ? ", or set head_width" : "");
  } else if (rotary && model.head_dim() % 2 != 0) {
    rules.wrong(width_given ? "model.head_width" : "model.heads",
                "{}{} is odd, and rotary positions turn pairs; set head_width = {}",
                width_given ? "" : "width / heads = ", model.head_dim(), model.head_dim() + 1);
  }
}

void check_rope(const RopeScalingConfig& rope, int64_t head_dim, Rules& rules) {
  const RopeScalingConfig usual;
  const bool stretched = rope.type != RopeStretch::kNone, llama3 = rope.type == RopeStretch::kLlama3;
  rules.needs("model.rope_scaling.factor", rope.factor != usual.factor, stretched,
              "while rope_scaling.type is \"none\"");
  rules.needs("model.rope_scaling.low_freq_factor", rope.low_freq_factor != usual.low_freq_factor, llama3,
              "unless rope_scaling.type = \"llama3\"");
  rules.needs("model.rope_scaling.high_freq_factor", rope.high_freq_factor != usual.high_freq_factor, llama3,
              "unless rope_scaling.type = \"llama3\"");
  rules.needs(
      "model.rope_scaling.original_max_seq_len", rope.original_max_seq_len != usual.original_max_seq_len,
      llama3 || rope.type == RopeStretch::kDynamic, "unless rope_scaling.type is \"llama3\" or \"dynamic\"");
  if (llama3 && rope.low_freq_factor >= rope.high_freq_factor)
    rules.wrong("model.rope_scaling.low_freq_factor",
                "{} is not below high_freq_factor = {}; Llama 3.1 has 1 and 4", rope.low_freq_factor,
                rope.high_freq_factor);
  if (rope.type == RopeStretch::kDynamic && head_dim <= 2)
    rules.wrong("model.rope_scaling.type", "dynamic wants heads of more than 2, and they are {} wide",
                head_dim);
}

void check_xpos(const MptConfig& model, Rules& rules) {
  if (!model.xpos_scale_base) return;
  rules.needs("model.xpos_scale_base", true, model.positions == PositionKind::kRope,
              "unless positions = \"rope\"");
  if (model.rope_scaling.type != RopeStretch::kNone)
    rules.wrong("model.xpos_scale_base", "cannot go with rope_scaling: choose one of the two");
  if (model.heads * model.head_dim() != model.width)
    rules.wrong("model.xpos_scale_base",
                "wants heads of width / heads: LLM Foundry would turn only a part of wider ones");
  // The first query's product with the last key, which is hidden but may be computed, grows to
  // 3.5^(max_seq_len / base).
  const double base = *model.xpos_scale_base, least = static_cast<double>(model.max_seq_len) / 64;
  if (base < least)
    rules.wrong("model.xpos_scale_base",
                "{} makes numbers beyond fp32 in max_seq_len = {} positions; {} is the least", base,
                model.max_seq_len, least);
}

bool is_kaiming(InitScheme name) {
  return name == InitScheme::kKaimingNormal || name == InitScheme::kKaimingUniform;
}

/// What draws the matrices of an MPT.
void check_mpt_matrices(const MptInitConfig& init, Rules& rules) {
  const MptInitConfig usual;
  const bool xavier = init.name == InitScheme::kXavierNormal || init.name == InitScheme::kXavierUniform;
  const bool kaiming = is_kaiming(init.name), leaky = init.init_nonlinearity == GainOf::kLeakyRelu;
  rules.needs("model.init.init_std", init.init_std.has_value(), init.name == InitScheme::kBaseline,
              "unless init.name = \"baseline_\"");
  if (init.name == InitScheme::kBaseline && !init.init_std)
    rules.wrong("model.init.init_std",
                "is missing: baseline_ draws with this standard deviation; 0.02 is usual");
  rules.needs(
      "model.init.init_gain", init.init_gain.has_value(), xavier || (kaiming && leaky),
      "unless init.name is \"xavier_normal_\" or \"xavier_uniform_\", or init_nonlinearity \"leaky_relu\"");
  rules.needs("model.init.fan_mode", init.fan_mode != usual.fan_mode, kaiming,
              "unless init.name is \"kaiming_normal_\" or \"kaiming_uniform_\"");
  rules.needs("model.init.init_nonlinearity", init.init_nonlinearity != usual.init_nonlinearity, kaiming,
              "unless init.name is \"kaiming_normal_\" or \"kaiming_uniform_\"");
  const bool divides = init.name != InitScheme::kNeox && init.name != InitScheme::kDefault;
  rules.needs("model.init.init_div_is_residual", !init.init_div_is_residual, divides,
              "beside neox_init_ and default_, which divide as they do");
  rules.needs("model.init.residual_divisor", init.residual_divisor.has_value(),
              divides && init.init_div_is_residual,
              "beside neox_init_, default_ and init_div_is_residual = false");
}

/// What draws the embeddings of an MPT.
void check_mpt_embeddings(const MptInitConfig& init, Rules& rules) {
  const bool own = init.name != InitScheme::kDefault;
  rules.needs("model.init.emb_init_std", init.emb_init_std.has_value(), own,
              "beside default_, whose embeddings have deviation 1");
  rules.needs("model.init.emb_init_uniform_lim", init.emb_init_uniform_lim.has_value(),
              own && !init.emb_init_std, "beside emb_init_std and default_");
  rules.needs("model.init.emb_init_uniform_range", init.emb_init_uniform_range.has_value(),
              own && !init.emb_init_std && !init.emb_init_uniform_lim,
              "beside emb_init_std, emb_init_uniform_lim and default_");
  if (const auto& range = init.emb_init_uniform_range; range && (*range)[0] >= (*range)[1])
    rules.wrong("model.init.emb_init_uniform_range", "{} is not below {}", (*range)[0], (*range)[1]);
}

const char* const kNeedsAttnScale = "unless attn_scale is above 0";

/// What one kind of blocks says; `name` is in the order.
void check_block_kind(const MptConfig& model, const std::string& name, const BlockKindConfig& kind,
                      Rules& rules) {
  const std::string path = "model.blocks.kinds." + name;
  const TemperatureTuningConfig &own = kind.temperature_tuning, &all = model.temperature_tuning;
  if (kind.nope && model.positions == PositionKind::kLearned)
    rules.wrong(
        path + ".nope",
        "learned positions are in the embeddings, before any block; set positions = \"rope\" or \"alibi\"");
  rules.needs(path + ".nope", kind.nope, model.positions != PositionKind::kNone,
              "while positions = \"none\"");
  rules.needs(path + ".temperature_tuning.floor_scale", own.floor_scale.has_value(),
              own.attn_scale.value_or(all.attn_scale.value_or(0)) > 0, kNeedsAttnScale);
  if (kind.reuse_kv && kind.reuse_kv_x)
    rules.wrong(path + ".reuse_kv_x", "cannot go with reuse_kv: choose one of the two");
  if (!kind.sliding_window && !kind.nope && !kind.reuse_kv && !kind.reuse_kv_x && !own.attn_scale &&
      !own.floor_scale)
    rules.wrong(path, "says nothing; give it a key, or write \"default\" in blocks.order");
}

/// Blocks that would look before the first one.
void check_reuse(const MptConfig& model, const char* key, std::optional<int64_t> BlockKindConfig::*reuse,
                 Rules& rules) {
  const BlocksConfig& blocks = model.blocks;
  std::set<std::string> noted;
  for (int64_t i = 0; i < std::min(model.layers, std::ssize(blocks.order)); ++i) {
    const std::string& name = blocks.order[static_cast<size_t>(i)];
    const int64_t back = (blocks.kind_of(i).*reuse).value_or(0);
    if (back > i && noted.insert(name).second)
      rules.wrong(
          fmt::format("model.blocks.kinds.{}.{}", name, key),
          "wants {} blocks before its own, and block {} has {}; let other kinds come first in blocks.order",
          back, i + 1, i);
  }
}

/// Scaled queries and scaled keys tell distances; one of them alone would tell how long the sequence is.
void check_xpos_of_reused_keys(const MptConfig& model, Rules& rules) {
  const BlocksConfig& blocks = model.blocks;
  if (!model.xpos_scale_base) return;
  std::set<std::string> noted;
  for (int64_t i = 0; i < std::min(model.layers, std::ssize(blocks.order)); ++i) {
    int64_t owner = i;
    while (owner >= 0 && blocks.kind_of(owner).reuse_kv) owner -= *blocks.kind_of(owner).reuse_kv;
    if (owner < 0 || blocks.kind_of(owner).nope == blocks.kind_of(i).nope) continue;
    const std::string& name = blocks.order[static_cast<size_t>(i)];
    if (noted.insert(name).second)
      rules.wrong(fmt::format("model.blocks.kinds.{}.reuse_kv", name),
                  "leads to keys {} xPos, and its queries are {}; set nope in both or in neither",
                  blocks.kind_of(owner).nope ? "without" : "with",
                  blocks.kind_of(i).nope ? "without" : "with");
  }
}

void check_blocks(const MptConfig& model, Rules& rules) {
  const BlocksConfig& blocks = model.blocks;
  const bool floor_is_used = model.temperature_tuning.attn_scale.value_or(0) > 0 ||
                             std::any_of(blocks.kinds.begin(), blocks.kinds.end(), [](const auto& kind) {
                               const TemperatureTuningConfig& own = kind.second.temperature_tuning;
                               return own.attn_scale.value_or(0) > 0 && !own.floor_scale;
                             });
  rules.needs("model.temperature_tuning.floor_scale", model.temperature_tuning.floor_scale.has_value(),
              floor_is_used, kNeedsAttnScale);
  std::vector<std::string> names = {BlocksConfig::kDefaultKind};
  for (const auto& [name, kind] : blocks.kinds) names.push_back(name);
  bool known = true;
  for (size_t i = 0; i < blocks.order.size(); ++i) {
    if (std::find(names.begin(), names.end(), blocks.order[i]) != names.end()) continue;
    known = false;
    rules.wrong(fmt::format("model.blocks.order[{}]", i + 1), "\"{}\" is none of blocks.kinds{}",
                blocks.order[i], did_you_mean(blocks.order[i], names));
  }
  if (const auto length = std::ssize(blocks.order); length > 0 && model.layers % length != 0)
    rules.wrong("model.blocks.order", "has {} blocks, and layers = {} is not a multiple of it", length,
                model.layers);
  for (const auto& [name, kind] : blocks.kinds) {
    if (name == BlocksConfig::kDefaultKind)
      rules.wrong("model.blocks.kinds.default", "is what the model says; choose another name");
    else if (std::find(blocks.order.begin(), blocks.order.end(), name) == blocks.order.end())
      rules.wrong("model.blocks.kinds." + name, "is not in blocks.order; add it there or leave it out");
    else
      check_block_kind(model, name, kind, rules);
  }
  if (!known) return;
  check_reuse(model, "reuse_kv", &BlockKindConfig::reuse_kv, rules);
  check_reuse(model, "reuse_kv_x", &BlockKindConfig::reuse_kv_x, rules);
  check_xpos_of_reused_keys(model, rules);
}

constexpr const char* kBesideWeights = "beside weights, which are the first values";

void check_family(const LlamaConfig& model, Rules& rules) {
  const LlamaConfig usual;
  check_heads(model, true, rules);
  check_rope(model.rope_scaling, model.head_dim(), rules);
  rules.needs("model.init", model.init != usual.init, model.weights.empty(), kBesideWeights);
  rules.needs("model.init_std", model.init_std != usual.init_std, model.weights.empty(), kBesideWeights);
}

void check_family(const Gpt2Config& model, Rules& rules) {
  check_heads(model, false, rules);
  rules.needs("model.init_std", model.init_std != Gpt2Config().init_std, model.weights.empty(),
              kBesideWeights);
}

void check_family(const MptConfig& model, Rules& rules) {
  const bool rotary = model.positions == PositionKind::kRope;
  const MptConfig usual;
  check_heads(model, rotary, rules);
  rules.needs("model.alibi_bias_max", model.alibi_bias_max != usual.alibi_bias_max,
              model.positions == PositionKind::kAlibi, "unless positions = \"alibi\"");
  rules.needs("model.rope_theta", model.rope_theta != usual.rope_theta, rotary,
              "unless positions = \"rope\"");
  rules.needs("model.rope_scaling", model.rope_scaling.type != RopeStretch::kNone, rotary,
              "unless positions = \"rope\"");
  check_rope(model.rope_scaling, model.head_dim(), rules);
  check_xpos(model, rules);
  if (model.qk_ln && model.qk_gn) rules.wrong("model.qk_gn", "cannot go with qk_ln: choose one of the two");
  const double hidden = model.expansion_ratio * static_cast<double>(model.width);
  if (!model.ffn_width && hidden != std::floor(hidden))
    rules.wrong("model.expansion_ratio", "{} x width = {} is {}, not a whole number; set ffn_width",
                model.expansion_ratio, model.width, hidden);
  rules.needs("model.expansion_ratio", model.expansion_ratio != usual.expansion_ratio, !model.ffn_width,
              "beside ffn_width");
  check_blocks(model, rules);
  rules.needs("model.init", !(model.init == usual.init), model.weights.empty(), kBesideWeights);
  check_mpt_matrices(model.init, rules);
  check_mpt_embeddings(model.init, rules);
}

}  // namespace

std::vector<ConfigProblem> model_problems(const ModelConfig& config) {
  Rules rules;
  std::visit(
      [&](const auto& model) {
        check_sizes(model, rules);
        if (rules.problems().empty()) check_family(model, rules);
      },
      config.value);
  return std::move(rules.problems());
}

int64_t largest_divisor(int64_t n, int64_t limit) {
  int64_t divisor = std::clamp<int64_t>(std::min(n, limit), 1, 1 << 16);
  while (n % divisor != 0) --divisor;
  return divisor;
}

}  // namespace tycho
