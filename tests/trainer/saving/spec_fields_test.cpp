// Every field of a decoder's spec decides about a tiny model of transformers: when it alone is changed, the
// model's file no longer fits or its logits are others.
#include <array>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "tests/trainer/saving/oracle_model.h"
#include "trainer/families/config.h"
#include "trainer/families/decoder_spec.h"

namespace tycho {
namespace {

/// Calls visit(path, field) for every field of a spec and of its parts. Each struct is taken apart by a
/// structured binding, so that this does not compile when a field is added.
template <class Visit>
class SpecVisitor {
 public:
  explicit SpecVisitor(const Visit& visit) : visit_(visit) {}

  void fields(const std::string& path, NormSpec& s) {
    auto& [kind, eps, bias, weight_offset] = s;
    all(path + ".", {"kind", "eps", "bias", "weight_offset"}, kind, eps, bias, weight_offset);
  }

  void fields(const std::string& path, AttentionSpec& s) {
    auto& [heads, kv_heads, head_dim, first_head, all_heads, qkv_bias, out_bias, softmax_scale, softcap,
           clip_qkv, qk_norm, qk, dropout, any_order, flash_3] = s;
    static_cast<void>(any_order), static_cast<void>(flash_3);  // the recipe's, for GPUs: no family sets them
    all(path + ".",
        {"heads", "kv_heads", "head_dim", "first_head", "all_heads", "qkv_bias", "out_bias", "softmax_scale",
         "softcap", "clip_qkv", "qk_norm", "qk", "dropout"},
        heads, kv_heads, head_dim, first_head, all_heads, qkv_bias, out_bias, softmax_scale, softcap,
        clip_qkv, qk_norm, qk, dropout);
  }

  void fields(const std::string& path, FeedForwardSpec& s) {
    auto& [width, first_hidden, gated, activation, bias] = s;
    all(path + ".", {"width", "first_hidden", "gated", "activation", "bias"}, width, first_hidden, gated,
        activation, bias);
  }

  void fields(const std::string& path, RopeScalingConfig& s) {
    auto& [type, factor, low_freq_factor, high_freq_factor, original_max_seq_len, beta_fast, beta_slow,
           truncate, mscale, mscale_all_dim, attention_factor, short_factor, long_factor] = s;
    all(path + ".",
        {"type", "factor", "low_freq_factor", "high_freq_factor", "original_max_seq_len", "beta_fast",
         "beta_slow", "truncate", "mscale", "mscale_all_dim", "attention_factor", "short_factor",
         "long_factor"},
        type, factor, low_freq_factor, high_freq_factor, original_max_seq_len, beta_fast, beta_slow, truncate,
        mscale, mscale_all_dim, attention_factor, short_factor, long_factor);
  }

  void fields(const std::string& path, RotarySpec& s) {
    auto& [theta, dim, scaling, xpos_scale_base] = s;
    all(path + ".", {"theta", "dim", "scaling", "xpos_scale_base"}, theta, dim, scaling, xpos_scale_base);
  }

  /// Visits the fields of the first rotations and of the second ones apart.
  void fields(const std::string& path, PositionsSpec& s) {
    auto& [learned, rotary, alibi_bias_max] = s;
    all(path + ".", {"learned", "alibi_bias_max"}, learned, alibi_bias_max);
    for (size_t i = 0; i < rotary.size(); ++i)
      fields(path + (i == 0 ? ".rotary" : ".rotary of sliding blocks"), rotary[i]);
  }

  void fields(const std::string& path, EmbeddingSpec& s) {
    auto& [scale, fraction, dropout] = s;
    all(path + ".", {"scale", "fraction", "dropout"}, scale, fraction, dropout);
  }

  void fields(const std::string& path, ResidualSpec& s) {
    auto& [scale, dropout] = s;
    all(path + ".", {"scale", "dropout"}, scale, dropout);
  }

  void fields(const std::string& path, LogitsSpec& s) {
    auto& [scale, softcap] = s;
    all(path + ".", {"scale", "softcap"}, scale, softcap);
  }

  void fields(const std::string& path, DecoderNames& s) {
    auto& [embedding, positions, block, norm1, norm2, norm1_after, norm2_after, q_norm, k_norm, q, k, v,
           q_alone, out, gate, up, down, final_norm, head] = s;
    all(path + ".",
        {"embedding", "positions", "block", "norm1", "norm2", "norm1_after", "norm2_after", "q_norm",
         "k_norm", "q", "k", "v", "q_alone", "out", "gate", "up", "down", "final_norm", "head"},
        embedding, positions, block, norm1, norm2, norm1_after, norm2_after, q_norm, k_norm, q, k, v, q_alone,
        out, gate, up, down, final_norm, head);
  }

  void fields(const std::string& path, BlockSpec& s) {
    auto& [window, positions, rotary, attn_scale, floor_scale, counts_from, x_block, kv_block] = s;
    all(path + ".",
        {"window", "positions", "rotary", "attn_scale", "floor_scale", "counts_from", "x_block", "kv_block"},
        window, positions, rotary, attn_scale, floor_scale, counts_from, x_block, kv_block);
  }

  /// Visits a field of blocks once for each block.
  void fields(DecoderSpec& s) {
    auto& [width, layers, vocab_size, first_vocab, tied, in_out, norm, norm_position, attention, ffn,
           positions, embedding, residual, logits, blocks, names, init, lora, fp8] = s;
    all("",
        {"width", "layers", "vocab_size", "first_vocab", "tied", "in_out", "norm", "norm_position",
         "attention", "ffn", "positions", "embedding", "residual", "logits", "names", "init", "lora", "fp8"},
        width, layers, vocab_size, first_vocab, tied, in_out, norm, norm_position, attention, ffn, positions,
        embedding, residual, logits, names, init, lora, fp8);
    for (BlockSpec& block : blocks) fields("blocks", block);
  }

 private:
  template <class Field>
  void fields(const std::string& path, Field& field) {
    visit_(path, field);
  }
  template <class... Fields>
  void all(const std::string& path, const std::array<const char*, sizeof...(Fields)>& names,
           Fields&... parts) {
    size_t i = 0;
    (fields(path + names[i++], parts), ...);
  }

  const Visit& visit_;
};

template <class Visit>
void visit_fields(const Visit& visit, DecoderSpec& spec) {
  SpecVisitor<Visit>(visit).fields(spec);
}

// Another value of a field.
void flip(const std::string& path, double& x) {
  if (path.ends_with(".eps"))
    x = 1e-6;
  else if (path.ends_with("theta"))
    x *= 20;
  else
    x = x == 0 ? 0.5 : 1.7 * x;
}
void flip(const std::string& path, int64_t& x) {
  if (path == "blocks.window")
    x = x < 0 ? 3 : -1;
  else if (path == "blocks.counts_from")
    x = 1 - x;
  else if (path == "layers")
    --x;
  else if (path.ends_with(".dim"))
    x -= 2;
  else
    x += path.ends_with("original_max_seq_len") ? x : 2;
}
void flip(const std::string&, bool& x) { x = !x; }
void flip(const std::string&, std::string& x) { x += "_other"; }
void flip(const std::string&, size_t& index) { index = 1 - index; }
void flip(const std::string&, std::optional<double>& x) { x = x.value_or(1) * 0.6; }
void flip(const std::string&, std::vector<double>& all) {
  for (double& x : all) x *= 2;
}
void flip(const std::string&, NormKind& x) { x = x == NormKind::kRms ? NormKind::kLayer : NormKind::kRms; }
void flip(const std::string&, NormPosition& x) {
  x = x == NormPosition::kBefore ? NormPosition::kAfter : NormPosition::kBefore;
}
void flip(const std::string&, QkNorm& x) { x = x == QkNorm::kNone ? QkNorm::kPerHead : QkNorm::kNone; }
void flip(const std::string&, FeedForwardActivation& x) {
  x = x == Activation::kGelu ? Activation::kSilu : Activation::kGelu;
}
void flip(const std::string&, RopeScaling& x) { x = RopeScaling::kNone; }
void flip(const std::string&, DecoderInit&) {}
void flip(const std::string&, LoraConfig&) {}
void flip(const std::string&, Fp8Config&) {}

/// The fixture, a folder of tests/golden/families, in which a field decides about logits or about the file.
const std::map<std::string, const char*>& fixtures() {
  static const std::map<std::string, const char*> all = {
      {"width", "qwen3_tied"},
      {"layers", "qwen3_tied"},
      {"vocab_size", "qwen3_tied"},
      {"tied", "qwen3_tied"},
      {"in_out", "qwen3_tied"},
      {"norm.kind", "mistral_window"},
      {"norm.eps", "olmo2_grouped"},
      {"norm.bias", "mistral_window"},
      {"norm.weight_offset", "gemma2"},
      {"norm_position", "olmo2"},
      {"attention.heads", "qwen2_tied"},
      {"attention.kv_heads", "qwen2_tied"},
      {"attention.head_dim", "qwen3_tied"},
      {"attention.qkv_bias", "qwen2_tied"},
      {"attention.out_bias", "qwen3_bias_yarn"},
      {"attention.softmax_scale", "granite"},
      {"attention.softcap", "gemma2"},
      {"attention.qk_norm", "qwen3_tied"},
      {"attention.qk.kind", "olmo2"},
      {"attention.qk.eps", "qwen3_window"},
      {"attention.qk.bias", "qwen3_window"},
      {"attention.qk.weight_offset", "gemma3_pattern"},
      {"ffn.width", "mistral_window"},
      {"ffn.gated", "mistral_window"},
      {"ffn.activation", "gemma2"},
      {"ffn.bias", "smollm3_layers"},
      {"positions.rotary.theta", "gemma3_linear"},
      {"positions.rotary.dim", "phi4_partial"},
      {"positions.rotary.scaling.type", "qwen2_yarn"},
      {"positions.rotary.scaling.factor", "mistral_linear"},
      {"positions.rotary.scaling.original_max_seq_len", "qwen3_bias_yarn"},
      {"positions.rotary.scaling.beta_fast", "qwen3_bias_yarn"},
      {"positions.rotary.scaling.beta_slow", "qwen3_bias_yarn"},
      {"positions.rotary.scaling.truncate", "qwen2_yarn"},
      {"positions.rotary.scaling.mscale", "ministral3_scale"},
      {"positions.rotary.scaling.mscale_all_dim", "ministral3_scale"},
      {"positions.rotary.scaling.attention_factor", "phi3_attention_factor"},
      {"positions.rotary.scaling.short_factor", "phi3_short"},
      {"positions.rotary.scaling.long_factor", "phi3_long"},
      {"positions.rotary of sliding blocks.theta", "gemma3_linear"},
      {"positions.rotary of sliding blocks.dim", "gemma3_linear"},
      {"embedding.scale", "gemma3_pattern"},
      {"residual.scale", "granite"},
      {"logits.scale", "granite"},
      {"logits.softcap", "gemma2"},
      {"names.embedding", "qwen3_tied"},
      {"names.block", "qwen3_tied"},
      {"names.norm1", "qwen3_tied"},
      {"names.norm2", "qwen3_tied"},
      {"names.norm1_after", "gemma2"},
      {"names.norm2_after", "olmo2"},
      {"names.q_norm", "qwen3_tied"},
      {"names.k_norm", "qwen3_tied"},
      {"names.q", "phi3_short"},
      {"names.k", "qwen3_tied"},
      {"names.v", "qwen3_tied"},
      {"names.out", "qwen3_tied"},
      {"names.gate", "phi3_short"},
      {"names.up", "qwen3_tied"},
      {"names.down", "qwen3_tied"},
      {"names.final_norm", "qwen3_tied"},
      {"names.head", "mistral_window"},
      {"blocks.window", "gemma2"},
      {"blocks.positions", "smollm3"},
      {"blocks.rotary", "gemma3_linear"},
      {"blocks.attn_scale", "ministral3_tied"},
      {"blocks.floor_scale", "ministral3_tied"},
      {"blocks.counts_from", "ministral3_tied"},
  };
  return all;
}

/// Fields that decide about no logits of these folders, and why.
const std::map<std::string, const char*>& others() {
  static const std::map<std::string, const char*> all = {
      {"attention.all_heads", "only ranks along tp look at it: tensor_parallel_test"},
      {"blocks.x_block", "only MPT reuses inputs: foundry_oracles_test"},
      {"blocks.kv_block", "only MPT reuses keys and values: foundry_oracles_test"},
      {"fp8", "generation computes in bf16: fp8_oracles_test"},
      {"init", "the weights come from the folder: initial_weights_test"},
      {"lora", "adapters are files of their own: peft_oracles_test"},
      {"names.q_alone", "only MPT has blocks without keys and values of their own: foundry_oracles_test"},
      {"names.positions", "only models with learned positions have it: hf_oracles_test"},
      {"positions.rotary of sliding blocks.scaling.factor", "their rotations are not scaled"},
      {"positions.rotary of sliding blocks.scaling.original_max_seq_len", "their rotations are not scaled"},
  };
  return all;
}

template <class Field>
constexpr bool kCompares = requires(const Field& a) {
  a == a;
};

bool same_files(const DecoderSpec& one, const DecoderSpec& other) {
  const auto a = decoder_layout(one).units, b = decoder_layout(other).units;
  const auto same_param = [](const ParamSpec& x, const ParamSpec& y) {
    return x.name == y.name && x.shape == y.shape;
  };
  return std::ranges::equal(a, b, [&](const UnitSpec& x, const UnitSpec& y) {
    return std::ranges::equal(x.params, y.params, same_param);
  });
}

class SpecFields : public testing::Test {
 protected:
  /// How far logits move when this field of a fixture is another; infinity where its file no longer fits.
  static double change(const std::string& field, const std::string& fixture) {
    const OracleModel model(family_folder(fixture), family_folder(fixture) + "/expected.safetensors");
    const DecoderSpec usual = decoder_spec(model.config);
    DecoderSpec other = usual;
    bool found = false;
    visit_fields(
        [&](const std::string& path, auto& value) {
          if (path == field) flip(path, value), found = true;
        },
        other);
    EXPECT_TRUE(found) << "the spec of " << fixture << " has no " << field;
    if (!same_files(usual, other)) return std::numeric_limits<double>::infinity();
    LocalUnits units = model.load(UnitUse::kInfer);
    const Tensor& ids_BT = model.wanted("ids");
    Decoder decoder(other, units, ids_BT.size(0), ids_BT.size(1), at::kFloat, at::kCPU);
    const Tensor logits_NV = decoder.next_logits(ids_BT.reshape({-1}), {.every_position = true});
    return (logits_NV - model.wanted("logits").view(logits_NV.sizes())).abs().max().item<double>();
  }
  const c10::InferenceMode no_autograd_;
};

TEST_F(SpecFields, EachMovesTheLogitsOfAGoldenModel) {
  for (const auto& [field, fixture] : fixtures())
    EXPECT_GT(change(field, fixture), 1e-3) << field << " of " << fixture;
}

// A field that is in neither table must have its default in every folder.
TEST_F(SpecFields, ThatAFamilySetsAreAllMoved) {
  DecoderSpec usual;
  usual.blocks.resize(1), usual.positions.rotary.resize(2);
  std::set<std::string> known;
  for (const auto& entry : std::filesystem::directory_iterator(family_folder("")))
    if (entry.is_directory()) {
      DecoderSpec spec = decoder_spec(read_hf_config(read_hf_config_file(entry.path()), "config.json").model);
      visit_fields(
          [&](const std::string& path, const auto& value) {
            known.insert(path);
            if (fixtures().contains(path) || others().contains(path)) return;
            visit_fields(
                [&](const std::string& usual_path, const auto& default_value) {
                  if constexpr (std::is_same_v<decltype(value), decltype(default_value)> &&
                                kCompares<std::decay_t<decltype(value)>>) {
                    EXPECT_TRUE(path != usual_path || value == default_value)
                        << path << " is set in " << entry.path() << ": add a case that changes it";
                  }
                },
                usual);
          },
          spec);
    }
  for (const auto* table : {&fixtures(), &others()})
    for (const auto& [field, what] : *table) EXPECT_TRUE(known.contains(field)) << "no such field: " << field;
}

}  // namespace
}  // namespace tycho
