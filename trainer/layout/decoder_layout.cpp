// Builds the units of a decoder and the activation slots that its code uses.
#include "trainer/layout/decoder_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tycho {
namespace {

const Init kOnes = {Init::Kind::kOnes, 0};
const Init kZeros = {Init::Kind::kZeros, 0};

/// A block's unit, and where its parts are.
struct BlockUnit {
  UnitSpec unit;
  BlockParams at;
};

class BlockBuilder {
 public:
  BlockBuilder(const DecoderSpec& spec, int64_t layer)
      : s_(spec), reuses_kv_(spec.reuses_kv(layer)), reuses_x_(spec.reuses_x(layer)), init_(spec.init) {
    built_.unit.name = fmt::format("{}{}", spec.names.block, layer);
    if (!init_.by_depth) return;
    const double divisor = std::sqrt(2.0 * static_cast<double>(layer + 1));
    for (Init* init : {&init_.out, &init_.up, &init_.down}) init->scale /= divisor;
  }

  BlockUnit build() {
    norm(s_.names.norm1, built_.at.norm1_weight, built_.at.norm1_bias, s_.width, s_.norm_bias);
    attention();
    norm(s_.names.norm2, built_.at.norm2_weight, built_.at.norm2_bias, s_.width, s_.norm_bias);
    feed_forward();
    return std::move(built_);
  }

 private:
  int add(const std::string& name, Shape shape, Init init, bool decay) {
    built_.unit.params.push_back(
        {fmt::format("{}.{}", built_.unit.name, name), std::move(shape), init, decay});
    return static_cast<int>(built_.unit.params.size()) - 1;
  }
  /// [out, in], or [in, out].
  int matrix(const std::string& name, int64_t out, int64_t in, Init init) {
    return add(name + ".weight", s_.in_out ? Shape{in, out} : Shape{out, in}, init, true);
  }
  int bias(const std::string& name, int64_t out, int64_t in) {
    const Init drawn = {Init::Kind::kUniform, 1 / std::sqrt(static_cast<double>(in))};
    return add(name + ".bias", {out}, init_.draws_biases ? drawn : kZeros, false);
  }
  void norm(const std::string& name, int& weight, int& norm_bias, int64_t width, bool has_bias) {
    weight = add(name + ".weight", {width}, kOnes, false);
    if (has_bias) norm_bias = add(name + ".bias", {width}, kZeros, false);
  }
  void attention() {
    const int64_t q = s_.attention_width(), kv = s_.kv_heads * s_.head_dim;
    const DecoderNames& n = s_.names;
    if (reuses_kv_) {
      built_.at.qkv_weight = matrix(n.q_alone, q, s_.width, init_.qkv);
      if (s_.qkv_bias) built_.at.qkv_bias = bias(n.q_alone, q, s_.width);
    } else if (n.k.empty()) {
      built_.at.qkv_weight = matrix(n.q, s_.qkv_width(), s_.width, init_.qkv);
      if (s_.qkv_bias) built_.at.qkv_bias = bias(n.q, s_.qkv_width(), s_.width);
    } else if (reuses_x_) {
      built_.at.qkv_weight = matrix(n.q, q, s_.width, init_.qkv);
      stacks_.push_back({&built_.at.kv_weight, matrix(n.k, kv, s_.width, init_.qkv), 2});
      matrix(n.v, kv, s_.width, init_.qkv);
      if (s_.qkv_bias) {
        built_.at.qkv_bias = bias(n.q, q, s_.width);
        stacks_.push_back({&built_.at.kv_bias, bias(n.k, kv, s_.width), 2});
        bias(n.v, kv, s_.width);
      }
    } else {
      stacks_.push_back({&built_.at.qkv_weight, matrix(n.q, q, s_.width, init_.qkv), 3});
      matrix(n.k, kv, s_.width, init_.qkv);
      matrix(n.v, kv, s_.width, init_.qkv);
      if (s_.qkv_bias) {
        stacks_.push_back({&built_.at.qkv_bias, bias(n.q, q, s_.width), 3});
        bias(n.k, kv, s_.width);
        bias(n.v, kv, s_.width);
      }
    }
    if (s_.qk_norm != QkNorm::kNone) {
      const bool each = s_.qk_norm == QkNorm::kPerHead;
      norm(n.q_norm, built_.at.q_norm_weight, built_.at.q_norm_bias, each ? s_.head_dim : q, s_.qk_norm_bias);
      if (!reuses_kv_)
        norm(n.k_norm, built_.at.k_norm_weight, built_.at.k_norm_bias, each ? s_.head_dim : kv,
             s_.qk_norm_bias);
    }
    built_.at.out_weight = matrix(n.out, s_.width, q, init_.out);
    if (s_.out_bias) built_.at.out_bias = bias(n.out, s_.width, q);
  }

  void feed_forward() {
    const DecoderNames& n = s_.names;
    if (s_.gated) {
      stacks_.push_back({&built_.at.up_weight, matrix(n.gate, s_.ffn_width, s_.width, init_.gate), 2});
      matrix(n.up, s_.ffn_width, s_.width, init_.up);
      if (s_.ffn_bias) {
        stacks_.push_back({&built_.at.up_bias, bias(n.gate, s_.ffn_width, s_.width), 2});
        bias(n.up, s_.ffn_width, s_.width);
      }
    } else {
      built_.at.up_weight = matrix(n.up, s_.ffn_width, s_.width, init_.up);
      if (s_.ffn_bias) built_.at.up_bias = bias(n.up, s_.ffn_width, s_.width);
    }
    built_.at.down_weight = matrix(n.down, s_.width, s_.ffn_width, init_.down);
    if (s_.ffn_bias) built_.at.down_bias = bias(n.down, s_.width, s_.ffn_width);
    for (const auto& [index, first, count] : stacks_) {
      *index = static_cast<int>(built_.unit.params.size() + built_.unit.stacks.size());
      built_.unit.stacks.push_back({first, count});
    }
  }

  struct PendingStack {
    int* index;
    int first, count;
  };
  const DecoderSpec& s_;
  bool reuses_kv_, reuses_x_;
  DecoderInit init_;  // of this block
  BlockUnit built_;
  std::vector<PendingStack> stacks_;
};

UnitSpec embedding_unit(const DecoderSpec& s) {
  UnitSpec unit{.name = s.names.embedding};
  unit.params.push_back({s.names.embedding + ".weight", {s.vocab_size, s.width}, s.init.embedding, true});
  if (s.learned_positions > 0)
    unit.params.push_back(
        {s.names.positions + ".weight", {s.learned_positions, s.width}, s.init.positions, true});
  return unit;
}

UnitSpec head_unit(const DecoderSpec& s) {
  UnitSpec unit{.name = s.names.head};
  unit.params.push_back({s.names.final_norm + ".weight", {s.width}, kOnes, false});
  if (s.norm_bias) unit.params.push_back({s.names.final_norm + ".bias", {s.width}, kZeros, false});
  if (!s.tied) unit.params.push_back({s.names.head + ".weight", {s.vocab_size, s.width}, s.init.head, true});
  return unit;
}

SlotSpec fp32(const char* name, int64_t n) { return {name, {n}, SlotType::kFp32}; }

/// In the order of block_saved.
std::vector<SlotSpec> saved_slots(const DecoderSpec& s, BatchShape shape, int64_t block) {
  const int64_t N = shape.tokens(), D = s.width, F = s.ffn_width;
  const int64_t E = s.attention_width(), KV = 2 * s.kv_heads * s.head_dim;
  const bool reuses = s.reuses_kv(block), reused = !reuses && s.last_user_of_kv(block) != block;
  const bool reuses_x = s.reuses_x(block), x_reused = !reuses_x && s.last_user_of_x(block) != block;
  const int64_t C = reuses ? E : E + KV, means = s.norm == NormKind::kLayer ? N : 0;
  const int64_t groups_q = s.qk_norm == QkNorm::kPerHead    ? s.heads
                           : s.qk_norm == QkNorm::kTogether ? 1
                                                            : 0,
                groups_k = reuses                          ? 0
                           : s.qk_norm == QkNorm::kPerHead ? s.kv_heads
                                                           : groups_q;
  return {{"normed1", {N, D}, SlotType::kCompute, /*cheap=*/true},
          fp32("mean1", means),
          fp32("inv1", N),
          {"qkv_raw", {s.changes_qkv() ? N : 0, C}},
          fp32("q_mean", N * groups_q),
          fp32("q_inv", N * groups_q),
          fp32("k_mean", N * groups_k),
          fp32("k_inv", N * groups_k),
          {"qkv", {N, C}, SlotType::kCompute, /*cheap=*/false, /*kept=*/reused},
          {"attention", {N, E}},
          {"log_sum_exp", {shape.batch, s.heads, shape.seq}, SlotType::kFp32},
          {"middle", {N, D}},
          {"normed2", {N, D}, SlotType::kCompute, /*cheap=*/true},
          fp32("mean2", means),
          fp32("inv2", N),
          {"up", {N, s.gated ? 2 * F : F}, SlotType::kCompute, /*cheap=*/true},
          {"d_kv", {reused ? N : 0, KV}, SlotType::kCompute, /*cheap=*/false, /*kept=*/true},
          {"normed_kv", {reuses_x ? N : 0, D}, SlotType::kCompute, /*cheap=*/true},
          fp32("mean_kv", reuses_x ? means : 0),
          fp32("inv_kv", reuses_x ? N : 0),
          {"d_x", {x_reused ? N : 0, D}, SlotType::kCompute, /*cheap=*/false, /*kept=*/true}};
}

}  // namespace

BlockParams block_params(const DecoderSpec& spec, int64_t block) {
  return BlockBuilder(spec, block).build().at;
}

HeadParamIndex head_params(const DecoderSpec& spec) {
  HeadParamIndex index;
  if (spec.norm_bias) index.norm_bias = 1;
  if (!spec.tied) index.output = spec.norm_bias ? 2 : 1;
  return index;
}

ModelLayout decoder_layout(const DecoderSpec& s) {
  ModelLayout layout;
  layout.num_blocks = s.layers;
  layout.attention_width = s.attention_width();
  layout.width = s.width;
  layout.vocab_size = s.vocab_size;
  layout.tied = s.tied;
  layout.units.push_back(embedding_unit(s));
  for (int64_t i = 0; i < s.layers; ++i) layout.units.push_back(BlockBuilder(s, i).build().unit);
  layout.units.push_back(head_unit(s));
  // The look-up is not a product; a tied table takes part in one as the head.
  layout.num_matmul_params = layout.num_params() - (s.tied ? 0 : s.vocab_size * s.width);
  return layout;
}

ActivationSpecs decoder_activations(const DecoderSpec& s, BatchShape shape, int64_t compute_bytes,
                                    bool on_gpu) {
  const int64_t N = shape.tokens(), D = s.width, F = s.ffn_width, V = s.vocab_size;
  const int64_t E = s.attention_width(), C = s.qkv_width();
  ActivationSpecs specs;
  for (int64_t i = 0; i < s.layers; ++i) specs.saved.push_back(saved_slots(s, shape, i));
  specs.scratch = {{"hidden", {N, F}},
                   {"d_hidden", {N, F}},
                   {"d_qkv", {N, C}},
                   {"d_attention", {N, E}},
                   {"d_normed", {N, D}},
                   {"added", {s.resid_dropout > 0 ? N : 0, D}},
                   {"packed_qkv", {s.shares_kv() || s.shares_x() ? N : 0, C}},
                   {"d_normed_kv", {s.shares_x() ? N : 0, D}}};
  // Big chunks read the head's weights seldom; 64 MiB of logits is where more stops to pay on a CPU. A GPU
  // wants products of some thousand rows, whatever the vocabulary.
  constexpr int64_t kChunkBytes = int64_t{64} << 20;
  const int64_t fewest = on_gpu ? 4096 : 64;
  specs.head_chunk =
      std::clamp<int64_t>(kChunkBytes / (V * compute_bytes) / 64 * 64, std::min<int64_t>(N, fewest), N);
  const int64_t means = s.norm == NormKind::kLayer ? N : 0;
  specs.model = {{"stream", {s.layers + 1, N, D}},
                 {"normed_final", {N, D}},
                 fp32("mean_final", means),
                 fp32("inv_final", N),
                 {"logits", {specs.head_chunk, V}},
                 fp32("losses", N),
                 {"d_stream", {N, D}},
                 {"d_normed", {N, D}}};
  return specs;
}

}  // namespace tycho
