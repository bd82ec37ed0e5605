// Every rule names the key and what to write instead.
#include "trainer/families/check.h"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/field_types.h"
#include "trainer/base/nearest.h"

namespace tycho {
namespace {

void size_at_most(const char* path, std::optional<int64_t> value, double limit, ConfigProblems& problems) {
  problems.at_most(path, static_cast<double>(value.value_or(0)), limit);
}

template <class Family>
void check_sizes(const Family& model, ConfigProblems& problems) {
  size_at_most("model.width", model.width, 0x1p20, problems);
  size_at_most("model.layers", model.layers, 0x1p14, problems);
  size_at_most("model.heads", model.heads, 0x1p14, problems);
  if constexpr (requires { model.head_width; })
    size_at_most("model.head_width", model.head_width, 0x1p14, problems);
  if constexpr (requires { model.expansion_ratio; })
    problems.at_most("model.expansion_ratio", model.expansion_ratio, 0x1p10);
  size_at_most("model.ffn_width", model.ffn_width, 0x1p22, problems);
  size_at_most("model.vocab_size", model.vocab_size, 0x1p24, problems);
  size_at_most("model.max_seq_len", model.max_seq_len, 0x1p24, problems);
}

template <class Family>
void check_heads(const Family& model, bool rotary, ConfigProblems& problems) {
  const int64_t kv_heads = model.num_kv_heads();
  if (model.heads % kv_heads != 0) {
    problems.add("model.heads", "{} is not a multiple of kv_heads = {}; kv_heads = {} would work",
                 model.heads, kv_heads, largest_divisor(model.heads, kv_heads));
  }
  bool width_given = false;
  if constexpr (requires { model.head_width; }) width_given = model.head_width.has_value();
  if (!width_given && model.width % model.heads != 0) {
    problems.add(
        "model.heads", "width = {} is not a multiple of heads = {}; heads = {} would work{}", model.width,
        model.heads, largest_divisor(model.width, model.heads),
        requires { model.head_width; } ? ", or set head_width" : "");
  } else if (rotary && model.head_dim() % 2 != 0) {
    problems.add(width_given ? "model.head_width" : "model.heads",
                 "{}{} is odd, but rotary positions rotate pairs; set head_width = {}",
                 width_given ? "" : "width / heads = ", model.head_dim(), model.head_dim() + 1);
  }
}

void check_yarn(const RopeScalingConfig& rope, double theta, ConfigProblems& problems) {
  const RopeScalingConfig usual;
  const bool yarn = rope.type == RopeScaling::kYarn;
  const char* const when = "unless rope_scaling.type = \"yarn\"";
  problems.idle("model.rope_scaling.beta_fast", rope.beta_fast != usual.beta_fast, yarn, when);
  problems.idle("model.rope_scaling.beta_slow", rope.beta_slow != usual.beta_slow, yarn, when);
  problems.idle("model.rope_scaling.truncate", rope.truncate != usual.truncate, yarn, when);
  const auto scale = [&](const char* path, const std::optional<double>& own,
                         const std::optional<double>& other) {
    problems.idle(path, own.has_value(), yarn && other && !rope.attention_factor,
                  "unless rope_scaling.type = \"yarn\", mscale and mscale_all_dim are both set, and "
                  "attention_factor is not");
  };
  scale("model.rope_scaling.mscale", rope.mscale, rope.mscale_all_dim);
  scale("model.rope_scaling.mscale_all_dim", rope.mscale_all_dim, rope.mscale);
  if (!yarn) return;
  if (rope.beta_fast < rope.beta_slow)
    problems.add("model.rope_scaling.beta_fast", "{} is below beta_slow = {}; 32 and 1 are usual",
                 rope.beta_fast, rope.beta_slow);
  if (theta <= 1)
    problems.add("model.rope_theta", "{} is not above 1, which rope_scaling.type = \"yarn\" needs", theta);
}

void check_longrope(const RopeScalingConfig& rope, int64_t rotary_dim, ConfigProblems& problems) {
  const bool longrope = rope.type == RopeScaling::kLongrope;
  const auto check = [&](const char* path, const std::vector<double>& divisors) {
    problems.idle(path, !divisors.empty(), longrope, "unless rope_scaling.type = \"longrope\"");
    if (longrope && std::ssize(divisors) != rotary_dim / 2)
      problems.add(path, "has {} numbers, but {} pairs are rotated; write one for each", divisors.size(),
                   rotary_dim / 2);
  };
  check("model.rope_scaling.short_factor", rope.short_factor);
  check("model.rope_scaling.long_factor", rope.long_factor);
  if (longrope && rope.original_max_seq_len == 1)
    problems.add("model.rope_scaling.original_max_seq_len", "1 is too short for longrope; write 2 or more");
}

/// Checks a scaling of rotary_dim elements of each head.
/// counts_lengths: original_max_seq_len has an effect whatever the type.
void check_rope(const RopeScalingConfig& rope, double theta, int64_t rotary_dim, ConfigProblems& problems,
                bool counts_lengths = false) {
  const RopeScalingConfig usual;
  const bool stretched = rope.type != RopeScaling::kNone, llama3 = rope.type == RopeScaling::kLlama3;
  problems.idle("model.rope_scaling.factor", rope.factor != usual.factor, stretched,
                "while rope_scaling.type is \"none\"");
  problems.idle("model.rope_scaling.low_freq_factor", rope.low_freq_factor != usual.low_freq_factor, llama3,
                "unless rope_scaling.type = \"llama3\"");
  problems.idle("model.rope_scaling.high_freq_factor", rope.high_freq_factor != usual.high_freq_factor,
                llama3, "unless rope_scaling.type = \"llama3\"");
  problems.idle("model.rope_scaling.original_max_seq_len",
                rope.original_max_seq_len != usual.original_max_seq_len,
                counts_lengths || (stretched && rope.type != RopeScaling::kLinear),
                "unless rope_scaling.type is \"llama3\", \"dynamic\", \"yarn\" or \"longrope\"");
  problems.idle("model.rope_scaling.attention_factor", rope.attention_factor.has_value(),
                rope.type == RopeScaling::kYarn || rope.type == RopeScaling::kLongrope,
                "unless rope_scaling.type is \"yarn\" or \"longrope\"");
  if (llama3 && rope.low_freq_factor >= rope.high_freq_factor)
    problems.add("model.rope_scaling.low_freq_factor",
                 "{} is not below high_freq_factor = {}; Llama 3.1 has 1 and 4", rope.low_freq_factor,
                 rope.high_freq_factor);
  if (rope.type == RopeScaling::kDynamic && rotary_dim <= 2)
    problems.add("model.rope_scaling.type", "dynamic needs a head width above 2, got {}", rotary_dim);
  check_yarn(rope, theta, problems);
  check_longrope(rope, rotary_dim, problems);
}

void check_mpt_rope(const MptConfig& model, ConfigProblems& problems) {
  const RopeScaling type = model.rope_scaling.type;
  check_rope(model.rope_scaling, model.rope_theta, model.head_dim(), problems);
  if (type == RopeScaling::kYarn || type == RopeScaling::kLongrope)
    problems.add("model.rope_scaling.type", "{} is not known to LLM Foundry's MPT; use t.model.llama",
                 enum_name(type));
}

void check_xpos(const MptConfig& model, ConfigProblems& problems) {
  if (!model.xpos_scale_base) return;
  problems.idle("model.xpos_scale_base", true, model.positions == PositionKind::kRope,
                "unless positions = \"rope\"");
  if (model.rope_scaling.type != RopeScaling::kNone)
    problems.add("model.xpos_scale_base", "cannot be combined with rope_scaling: choose one");
  if (model.heads * model.head_dim() != model.width)
    problems.add("model.xpos_scale_base",
                 "needs heads of width / heads: LLM Foundry would rotate only part of wider ones");
  // The first query's product with the last key, which is hidden but may be computed, grows to
  // 3.5^(max_seq_len / base).
  const double base = *model.xpos_scale_base, least = static_cast<double>(model.max_seq_len) / 64;
  if (base < least)
    problems.add("model.xpos_scale_base",
                 "{} overflows fp32 within max_seq_len = {} positions; the minimum is {}", base,
                 model.max_seq_len, least);
}

bool is_kaiming(InitScheme name) {
  return name == InitScheme::kKaimingNormal || name == InitScheme::kKaimingUniform;
}

/// Checks the initialisation of an MPT's matrices.
void check_mpt_matrices(const MptInitConfig& init, ConfigProblems& problems) {
  const MptInitConfig usual;
  const bool xavier = init.name == InitScheme::kXavierNormal || init.name == InitScheme::kXavierUniform;
  const bool kaiming = is_kaiming(init.name), leaky = init.init_nonlinearity == GainOf::kLeakyRelu;
  problems.idle("model.init.init_std", init.init_std.has_value(), init.name == InitScheme::kBaseline,
                "unless init.name = \"baseline_\"");
  if (init.name == InitScheme::kBaseline && !init.init_std)
    problems.add("model.init.init_std",
                 "is missing: baseline_ draws with this standard deviation; 0.02 is usual");
  problems.idle(
      "model.init.init_gain", init.init_gain.has_value(), xavier || (kaiming && leaky),
      "unless init.name is \"xavier_normal_\" or \"xavier_uniform_\", or init_nonlinearity \"leaky_relu\"");
  problems.idle("model.init.fan_mode", init.fan_mode != usual.fan_mode, kaiming,
                "unless init.name is \"kaiming_normal_\" or \"kaiming_uniform_\"");
  problems.idle("model.init.init_nonlinearity", init.init_nonlinearity != usual.init_nonlinearity, kaiming,
                "unless init.name is \"kaiming_normal_\" or \"kaiming_uniform_\"");
  const bool divides = init.name != InitScheme::kNeox && init.name != InitScheme::kDefault;
  problems.idle("model.init.init_div_is_residual", !init.init_div_is_residual, divides,
                "together with neox_init_ and default_, which have their own division");
  problems.idle("model.init.residual_divisor", init.residual_divisor.has_value(),
                divides && init.init_div_is_residual,
                "together with neox_init_, default_ or init_div_is_residual = false");
}

/// Checks the initialisation of an MPT's embeddings.
void check_mpt_embeddings(const MptInitConfig& init, ConfigProblems& problems) {
  const bool own = init.name != InitScheme::kDefault;
  problems.idle("model.init.emb_init_std", init.emb_init_std.has_value(), own,
                "together with default_, whose embeddings have deviation 1");
  problems.idle("model.init.emb_init_uniform_lim", init.emb_init_uniform_lim.has_value(),
                own && !init.emb_init_std, "together with emb_init_std or default_");
  problems.idle("model.init.emb_init_uniform_range", init.emb_init_uniform_range.has_value(),
                own && !init.emb_init_std && !init.emb_init_uniform_lim,
                "together with emb_init_std, emb_init_uniform_lim or default_");
  if (const auto& range = init.emb_init_uniform_range; range && (*range)[0] >= (*range)[1])
    problems.add("model.init.emb_init_uniform_range", "{} is not below {}", (*range)[0], (*range)[1]);
}

const char* const kNeedsAttnScale = "unless attn_scale is above 0";

/// Checks one kind of blocks; `name` is its name in the order.
void check_block_kind(const MptConfig& model, const std::string& name, const BlockKindConfig& kind,
                      ConfigProblems& problems) {
  const std::string path = "model.blocks.kinds." + name;
  const TemperatureTuningConfig &own = kind.temperature_tuning, &all = model.temperature_tuning;
  if (kind.nope && model.positions == PositionKind::kLearned)
    problems.add(path + ".nope",
                 "learned positions are part of the embeddings, before any block; set positions = \"rope\" "
                 "or \"alibi\"");
  problems.idle(path + ".nope", kind.nope, model.positions != PositionKind::kNone,
                "while positions = \"none\"");
  problems.idle(path + ".temperature_tuning.floor_scale", own.floor_scale.has_value(),
                own.attn_scale.value_or(all.attn_scale.value_or(0)) > 0, kNeedsAttnScale);
  if (kind.reuse_kv && kind.reuse_kv_x)
    problems.add(path + ".reuse_kv_x", "cannot be combined with reuse_kv: choose one");
  if (!kind.sliding_window && !kind.nope && !kind.reuse_kv && !kind.reuse_kv_x && !own.attn_scale &&
      !own.floor_scale)
    problems.add(path, "is empty; give it a key, or write \"default\" in blocks.order");
}

/// Reports blocks that would reuse a block before the first one.
void check_reuse(const MptConfig& model, const char* key, std::optional<int64_t> BlockKindConfig::*reuse,
                 ConfigProblems& problems) {
  const BlocksConfig& blocks = model.blocks;
  std::set<std::string> noted;
  for (int64_t i = 0; i < std::min(model.layers, std::ssize(blocks.order)); ++i) {
    const std::string& name = blocks.order[static_cast<size_t>(i)];
    const int64_t back = (blocks.kind_of(i).*reuse).value_or(0);
    if (back > i && noted.insert(name).second)
      problems.add(
          fmt::format("model.blocks.kinds.{}.{}", name, key),
          "needs {} blocks before its own, but block {} has {}; put other kinds first in blocks.order", back,
          i + 1, i);
  }
}

/// Reports xPos with reused keys. Scaled queries and keys depend together on distances; one of them alone
/// would depend on the sequence length.
void check_xpos_of_reused_keys(const MptConfig& model, ConfigProblems& problems) {
  const BlocksConfig& blocks = model.blocks;
  if (!model.xpos_scale_base) return;
  std::set<std::string> noted;
  for (int64_t i = 0; i < std::min(model.layers, std::ssize(blocks.order)); ++i) {
    int64_t owner = i;
    while (owner >= 0 && blocks.kind_of(owner).reuse_kv) owner -= *blocks.kind_of(owner).reuse_kv;
    if (owner < 0 || blocks.kind_of(owner).nope == blocks.kind_of(i).nope) continue;
    const std::string& name = blocks.order[static_cast<size_t>(i)];
    if (noted.insert(name).second)
      problems.add(fmt::format("model.blocks.kinds.{}.reuse_kv", name),
                   "uses keys {} xPos, but its queries are {}; set nope in both or in neither",
                   blocks.kind_of(owner).nope ? "without" : "with",
                   blocks.kind_of(i).nope ? "without" : "with");
  }
}

void check_blocks(const MptConfig& model, ConfigProblems& problems) {
  const BlocksConfig& blocks = model.blocks;
  const bool floor_is_used = model.temperature_tuning.attn_scale.value_or(0) > 0 ||
                             std::any_of(blocks.kinds.begin(), blocks.kinds.end(), [](const auto& kind) {
                               const TemperatureTuningConfig& own = kind.second.temperature_tuning;
                               return own.attn_scale.value_or(0) > 0 && !own.floor_scale;
                             });
  problems.idle("model.temperature_tuning.floor_scale", model.temperature_tuning.floor_scale.has_value(),
                floor_is_used, kNeedsAttnScale);
  std::vector<std::string> names = {BlocksConfig::kDefaultKind};
  for (const auto& [name, kind] : blocks.kinds) names.push_back(name);
  bool known = true;
  for (size_t i = 0; i < blocks.order.size(); ++i) {
    if (std::find(names.begin(), names.end(), blocks.order[i]) != names.end()) continue;
    known = false;
    problems.add(fmt::format("model.blocks.order[{}]", i + 1), "\"{}\" is not one of blocks.kinds{}",
                 blocks.order[i], did_you_mean(blocks.order[i], names));
  }
  if (const auto length = std::ssize(blocks.order); length > 0 && model.layers % length != 0)
    problems.add("model.blocks.order", "has {} blocks, and layers = {} is not a multiple of it", length,
                 model.layers);
  for (const auto& [name, kind] : blocks.kinds) {
    if (name == BlocksConfig::kDefaultKind)
      problems.add("model.blocks.kinds.default", "means the model's own settings; choose another name");
    else if (std::find(blocks.order.begin(), blocks.order.end(), name) == blocks.order.end())
      problems.add("model.blocks.kinds." + name, "is not in blocks.order; add it there or remove it");
    else
      check_block_kind(model, name, kind, problems);
  }
  if (!known) return;
  check_reuse(model, "reuse_kv", &BlockKindConfig::reuse_kv, problems);
  check_reuse(model, "reuse_kv_x", &BlockKindConfig::reuse_kv_x, problems);
  check_xpos_of_reused_keys(model, problems);
}

void check_windows(const WindowedConfig& model, ConfigProblems& problems) {
  const auto slides = [&](LayerType type) { return type == LayerType::kSliding; };
  const bool some = model.layer_types.empty() || std::ranges::any_of(model.layer_types, slides);
  problems.idle("model.sliding_window", model.sliding_window.has_value(), some,
                "where no block of layer_types is \"sliding\"");
  if (some && !model.layer_types.empty() && !model.sliding_window)
    problems.add("model.sliding_window", "is missing: blocks of layer_types are \"sliding\"");
}

constexpr const char* kBesideWeights = "together with weights, which replace the initialisation";

/// Checks the rules of every family. A family with more rules has an overload.
template <class Family>
void check_family(const Family& model, ConfigProblems& problems) {
  const Family usual;
  constexpr bool kRotary = requires { model.rope_scaling; };
  check_heads(model, kRotary, problems);
  if constexpr (requires { model.rotary_dim(); })
    check_rope(model.rope_scaling, model.rope_theta, model.rotary_dim(), problems);
  else if constexpr (kRotary)
    check_rope(model.rope_scaling, model.rope_theta, model.head_dim(), problems,
               std::same_as<Family, Ministral3Config>);
  if constexpr (std::derived_from<Family, WindowedConfig>) check_windows(model, problems);
  if constexpr (requires { model.init; })
    problems.idle("model.init", model.init != usual.init, model.weights.empty(), kBesideWeights);
  problems.idle("model.init_std", model.init_std != usual.init_std, model.weights.empty(), kBesideWeights);
}

void check_family(const MptConfig& model, ConfigProblems& problems) {
  const bool rotary = model.positions == PositionKind::kRope;
  const MptConfig usual;
  check_heads(model, rotary, problems);
  problems.idle("model.alibi_bias_max", model.alibi_bias_max != usual.alibi_bias_max,
                model.positions == PositionKind::kAlibi, "unless positions = \"alibi\"");
  problems.idle("model.rope_theta", model.rope_theta != usual.rope_theta, rotary,
                "unless positions = \"rope\"");
  problems.idle("model.rope_scaling", model.rope_scaling.type != RopeScaling::kNone, rotary,
                "unless positions = \"rope\"");
  check_mpt_rope(model, problems);
  check_xpos(model, problems);
  if (model.qk_ln && model.qk_gn) problems.add("model.qk_gn", "cannot be combined with qk_ln: choose one");
  const double hidden = model.expansion_ratio * static_cast<double>(model.width);
  if (!model.ffn_width && hidden != std::floor(hidden))
    problems.add("model.expansion_ratio", "{} x width = {} is {}, not a whole number; set ffn_width",
                 model.expansion_ratio, model.width, hidden);
  problems.idle("model.expansion_ratio", model.expansion_ratio != usual.expansion_ratio, !model.ffn_width,
                "together with ffn_width");
  check_blocks(model, problems);
  problems.idle("model.init", !(model.init == usual.init), model.weights.empty(), kBesideWeights);
  check_mpt_matrices(model.init, problems);
  check_mpt_embeddings(model.init, problems);
}

void check_lora(const LoraConfig& lora, const std::string& weights, ConfigProblems& problems) {
  constexpr const char* kWithoutRank = "unless lora.rank is set";
  problems.idle("lora.alpha", lora.alpha.has_value(), lora.is_used(), kWithoutRank);
  problems.idle("lora.dropout", lora.dropout > 0, lora.is_used(), kWithoutRank);
  problems.idle("lora.rslora", lora.rslora, lora.is_used(), kWithoutRank);
  problems.idle("lora.targets", !lora.targets.empty(), lora.is_used(), kWithoutRank);
  if (lora.is_used() && weights.empty())
    problems.add(
        "lora.rank",
        "adapters are trained for a model that exists: name its folder with model.weights, or remove "
        "lora");
}

}  // namespace

void check(const ModelConfig& config, ConfigProblems& problems) {
  std::visit(
      [&](const auto& model) {
        const size_t before = problems.size();
        check_sizes(model, problems);
        if (problems.size() == before) check_family(model, problems);
        check_lora(config.lora, model.weights, problems);
      },
      config.value);
}

void check(const RecomputeConfig& recompute, ConfigProblems& problems) {
  problems.idle("recompute.every", recompute.every != 1, recompute.mode != Recompute::kNone,
                "unless recompute.mode is \"norms\", \"selective\" or \"full\"");
}

int64_t largest_divisor(int64_t n, int64_t limit) {
  int64_t divisor = std::clamp<int64_t>(std::min(n, limit), 1, 1 << 16);
  while (n % divisor != 0) --divisor;
  return divisor;
}

}  // namespace tycho
