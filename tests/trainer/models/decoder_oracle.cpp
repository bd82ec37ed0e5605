// A decoder for tests: plain ATen with autograd.
#include "tests/trainer/models/decoder_oracle.h"

#include <cmath>

namespace tycho {
namespace {

at::Tensor rotate_half(const at::Tensor& x) {
  const int64_t half = x.size(-1) / 2;
  return at::concat({-x.narrow(-1, half, half), x.narrow(-1, 0, half)}, -1);
}

/// Radians for each position, of pairs of `dim` elements; yarn as its paper has it (Peng et al. 2023,
/// arXiv:2309.00071): frequencies with many turns in the original length stay, those with few are divided.
at::Tensor frequencies(const RotarySpec& spec) {
  const auto dim = static_cast<double>(spec.dim);
  const RopeScalingConfig& rope = spec.scaling;
  at::Tensor pair = at::arange(0, spec.dim / 2, at::kDouble);
  const at::Tensor plain = at::pow(spec.theta, -2 * pair / dim);
  if (rope.type == RopeScaling::kLinear) return plain / rope.factor;
  if (rope.type != RopeScaling::kYarn) return plain;
  const auto pair_of = [&](double turns) {
    const double wavelength = static_cast<double>(rope.original_max_seq_len) / turns;
    return dim * std::log(wavelength / (2 * M_PI)) / (2 * std::log(spec.theta));
  };
  const double low = std::max(0.0, std::floor(pair_of(rope.beta_fast))),
               high = std::min(dim - 1, std::ceil(pair_of(rope.beta_slow)));
  const at::Tensor divided = at::clamp((pair - low) / (low == high ? 0.001 : high - low), 0, 1);
  return plain * (1 - divided) + plain / rope.factor * divided;
}

/// Factor of rotated queries and keys.
double rotary_factor(const RopeScalingConfig& rope) {
  if (rope.type != RopeScaling::kYarn) return 1;
  return rope.attention_factor.value_or(0.1 * std::log(rope.factor) + 1);
}

// x: [B, heads, T, d], of which the first `dim` elements are rotated. xpos: 1 / its scale base for queries,
// minus that for keys, counted from position 0.
at::Tensor rotary(const at::Tensor& whole, const RotarySpec& spec, double sign) {
  const int64_t seq = whole.size(2), dim = spec.dim;
  const at::Tensor x = whole.narrow(-1, 0, dim), rest = whole.narrow(-1, dim, whole.size(-1) - dim);
  const double xpos = spec.xpos_scale_base > 0 ? sign / spec.xpos_scale_base : 0;
  const at::Tensor half = at::outer(at::arange(seq, at::kDouble), frequencies(spec));
  const at::Tensor angle = at::concat({half, half}, -1);
  const at::Tensor turned =
      (x * at::cos(angle) + rotate_half(x) * at::sin(angle)) * rotary_factor(spec.scaling);
  if (xpos == 0) return at::concat({turned, rest}, -1);
  const at::Tensor fade = (at::arange(0, dim, 2, at::kDouble) + 0.4 * dim) / (1.4 * dim);
  return turned * at::pow(fade.repeat({2}), at::arange(seq, at::kDouble).unsqueeze(1) * xpos);
}

at::Tensor activated(Activation f, const at::Tensor& x) {
  switch (f) {
    case Activation::kGelu: return at::gelu(x);
    case Activation::kGeluTanh: return at::gelu(x, "tanh");
    case Activation::kQuickGelu: return x * at::sigmoid(1.702 * x);
    case Activation::kRelu: return at::relu(x);
    case Activation::kSilu: return x * at::sigmoid(x);
  }
  return {};
}

}  // namespace

DecoderOracle::DecoderOracle(const DecoderSpec& spec, const std::map<std::string, at::Tensor>& weights)
    : spec_(spec), attn_(spec.attention) {
  for (const auto& [name, value] : weights)
    weights_[name] = value.detach().to(at::kDouble).clone().set_requires_grad(true);
}

at::Tensor DecoderOracle::linear(const at::Tensor& x, const std::string& name) const {
  const at::Tensor matrix = weight(name + ".weight");
  const at::Tensor y = at::matmul(x, spec_.in_out ? matrix : matrix.t());
  const at::Tensor with_bias = kept(weights_.count(name + ".bias") ? y + weight(name + ".bias") : y);
  if (!weights_.count(name + ".lora_A.weight")) return with_bias;
  const at::Tensor low = kept(kept(at::matmul(x, weight(name + ".lora_A.weight").t())) * spec_.lora.scale());
  return kept(with_bias + kept(at::matmul(low, weight(name + ".lora_B.weight").t())));
}

at::Tensor DecoderOracle::norm(const at::Tensor& x, const std::string& name, const NormSpec& norm) const {
  const at::Tensor centred = norm.kind == NormKind::kLayer ? x - x.mean(-1, true) : x;
  const at::Tensor y = centred * at::rsqrt((centred * centred).mean(-1, true) + norm.eps) *
                       (weight(name + ".weight") + norm.weight_offset);
  return kept(weights_.count(name + ".bias") ? y + weight(name + ".bias") : y);
}

at::Tensor DecoderOracle::heads_normed(const at::Tensor& x_BTE, const std::string& name) const {
  if (attn_.qk_norm == QkNorm::kNone) return x_BTE;
  const bool together = attn_.qk_norm == QkNorm::kTogether;
  const at::Tensor rows = together ? x_BTE : x_BTE.unflatten(-1, {-1, attn_.head_dim});
  return norm(rows, name, attn_.qk).view(x_BTE.sizes());
}

at::Tensor DecoderOracle::scores(const at::Tensor& q_BHTd, const at::Tensor& k_BHTd,
                                 const BlockSpec& block) const {
  const int64_t seq = q_BHTd.size(2);
  at::Tensor scores = at::matmul(q_BHTd, k_BHTd.transpose(-1, -2)) * attn_.softmax_scale;
  if (attn_.softcap > 0) scores = at::tanh(scores / attn_.softcap) * attn_.softcap;
  const at::Tensor position = at::arange(seq), behind = position.unsqueeze(0) - position.unsqueeze(1);
  if (spec_.positions.alibi_bias_max > 0 && block.positions) {
    const std::vector<float> slopes = alibi_slopes(attn_.heads, spec_.positions.alibi_bias_max);
    scores = scores + at::tensor(slopes, at::kDouble).view({-1, 1, 1}) * behind;
  }
  at::Tensor hidden = behind > 0;
  if (block.window >= 0) hidden = hidden | (behind < -block.window);
  if (documents_BT.defined())
    hidden = hidden | (documents_BT.unsqueeze(2) != documents_BT.unsqueeze(1)).unsqueeze(1);
  return scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
}

at::Tensor DecoderOracle::longer_queries(const at::Tensor& q_BHTd, const BlockSpec& block) const {
  if (block.attn_scale == 0) return q_BHTd;
  const int64_t batch = q_BHTd.size(0), seq = q_BHTd.size(2);
  at::Tensor seen_BT = at::arange(1, seq + 1, at::kDouble).unsqueeze(0).expand({batch, seq});
  if (documents_BT.defined()) {  // tokens of the same document up to this one
    const at::Tensor same = documents_BT.unsqueeze(2) == documents_BT.unsqueeze(1);
    seen_BT = same.to(at::kDouble).tril().sum(-1);
  }
  const at::Tensor factor =
      (((seen_BT - 1 + block.counts_from) / block.floor_scale).floor() + 1).log() * block.attn_scale + 1;
  return q_BHTd * factor.view({batch, 1, seq, 1});
}

at::Tensor DecoderOracle::attention(const at::Tensor& x_BTD, const at::Tensor& x_of_kv_BTD, int64_t number,
                                    std::vector<KeysValues>& kv) const {
  const std::string layer = spec_.names.block + std::to_string(number) + ".";
  const BlockSpec& block = spec_.blocks[static_cast<size_t>(number)];
  const int64_t batch = x_BTD.size(0), seq = x_BTD.size(1), dim = attn_.head_dim;
  const int64_t q_width = attn_.heads * dim, kv_width = attn_.kv_heads * dim,
                group = attn_.heads / attn_.kv_heads;
  const bool rotates = !spec_.positions.rotary.empty() && block.positions;
  const DecoderNames& names = spec_.names;
  at::Tensor qkv = block.kv_block != number ? linear(x_BTD, layer + names.q_alone)
                   : names.k.empty()
                       ? linear(x_BTD, layer + names.q)
                       : at::concat({linear(x_BTD, layer + names.q), linear(x_of_kv_BTD, layer + names.k),
                                     linear(x_of_kv_BTD, layer + names.v)},
                                    -1);
  if (attn_.clip_qkv > 0) qkv = at::clamp(qkv, -attn_.clip_qkv, attn_.clip_qkv);
  const auto split = [&](const at::Tensor& x, int64_t heads) {
    return x.view({batch, seq, heads, dim}).transpose(1, 2);
  };
  at::Tensor q =
      split(heads_normed(qkv.narrow(-1, 0, q_width), layer + names.q_norm).contiguous(), attn_.heads);
  q = longer_queries(q, block);
  if (rotates) q = rotary(q, spec_.positions.rotary[block.rotary], 1);
  q = kept(q);
  if (block.kv_block == number) {
    at::Tensor k = split(heads_normed(qkv.narrow(-1, q_width, kv_width), layer + names.k_norm).contiguous(),
                         attn_.kv_heads);
    if (rotates) k = rotary(k, spec_.positions.rotary[block.rotary], -1);
    kv.push_back({kept(k), split(qkv.narrow(-1, q_width + kv_width, kv_width).contiguous(), attn_.kv_heads)});
  } else {
    kv.push_back(kv[static_cast<size_t>(block.kv_block)]);
  }
  const auto& [k, v] = kv.back();
  at::Tensor weights = at::softmax(scores(q, k.repeat_interleave(group, 1), block), -1);
  if (attention_factors) weights = weights * attention_factors(number);
  const at::Tensor out = kept(at::matmul(weights, v.repeat_interleave(group, 1)));
  return linear(out.transpose(1, 2).reshape({batch, seq, q_width}), layer + names.out);
}

at::Tensor DecoderOracle::feed_forward(const at::Tensor& x_BTD, const std::string& layer) const {
  const bool fused = spec_.names.up.empty();
  const at::Tensor both = fused ? linear(x_BTD, layer + spec_.names.gate) : at::Tensor();
  const at::Tensor up =
      fused ? both.narrow(-1, spec_.ffn.width, spec_.ffn.width) : linear(x_BTD, layer + spec_.names.up);
  at::Tensor hidden = activated(spec_.ffn.activation.builtin, up);
  if (spec_.ffn.gated) {
    const at::Tensor gate =
        fused ? both.narrow(-1, 0, spec_.ffn.width) : linear(x_BTD, layer + spec_.names.gate);
    hidden = activated(spec_.ffn.activation.builtin, gate) * up;
  }
  return linear(kept(hidden), layer + spec_.names.down);
}

at::Tensor DecoderOracle::logits(const at::Tensor& tokens_BT) const {
  const DecoderNames& names = spec_.names;
  at::Tensor x = at::embedding(weight(names.embedding + ".weight"), tokens_BT.to(at::kLong));
  if (spec_.positions.learned > 0)
    x = x + weight(names.positions + ".weight").narrow(0, 0, tokens_BT.size(1));
  x = x * spec_.embedding.scale;
  x = x * spec_.embedding.fraction + x.detach() * (1 - spec_.embedding.fraction);
  std::vector<KeysValues> kv;
  std::vector<at::Tensor> inputs;
  for (int64_t i = 0; i < spec_.layers; ++i) {
    const std::string layer = names.block + std::to_string(i) + ".";
    const auto before = [&](const at::Tensor& input, const std::string& name) {
      return spec_.norms_before() ? norm(input, layer + name, spec_.norm) : input;
    };
    const auto added = [&](const at::Tensor& output, const std::string& name) {
      return (spec_.norms_after() ? norm(output, layer + name, spec_.norm) : output) * spec_.residual.scale;
    };
    inputs.push_back(x);
    const at::Tensor& x_of_kv = inputs[static_cast<size_t>(spec_.block(i).x_block)];
    const at::Tensor attended = attention(before(x, names.norm1), before(x_of_kv, names.norm1), i, kv);
    x = kept(x + added(attended, names.norm1_after));
    x = kept(x + added(feed_forward(before(x, names.norm2), layer), names.norm2_after));
  }
  const at::Tensor head = weight((spec_.tied ? names.embedding : names.head) + ".weight");
  const at::Tensor logits =
      kept(at::matmul(norm(x, names.final_norm, spec_.norm), head.t()) * spec_.logits.scale);
  return spec_.logits.softcap > 0 ? at::tanh(logits / spec_.logits.softcap) * spec_.logits.softcap : logits;
}

at::Tensor DecoderOracle::loss_sum(const at::Tensor& tokens_BT, const at::Tensor& targets_BT) const {
  const at::Tensor log_p = at::log_softmax(logits(tokens_BT), -1).view({-1, spec_.vocab_size});
  return at::nll_loss(log_p, targets_BT.reshape(-1).to(at::kLong), {}, at::Reduction::Sum, -100);
}

}  // namespace tycho
