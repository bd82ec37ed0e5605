// A Llama for tests: plain ATen with autograd.
#include "tests/trainer/models/llama_oracle.h"

#include <cmath>

namespace tycho {
namespace {

at::Tensor rotate_half(const at::Tensor& x) {
  const int64_t half = x.size(-1) / 2;
  return at::cat({-x.narrow(-1, half, half), x.narrow(-1, 0, half)}, -1);
}

// x: [B, heads, T, d]
at::Tensor rotary(const at::Tensor& x, double theta) {
  const int64_t seq = x.size(2), dim = x.size(3);
  const at::Tensor exponent = at::arange(0, dim, 2, at::kDouble) / static_cast<double>(dim);
  const at::Tensor frequency = at::pow(theta, -exponent);
  const at::Tensor half = at::outer(at::arange(seq, at::kDouble), frequency);
  const at::Tensor angle = at::cat({half, half}, -1);
  return x * at::cos(angle) + rotate_half(x) * at::sin(angle);
}

}  // namespace

LlamaOracle::LlamaOracle(const LlamaConfig& config, const std::map<std::string, at::Tensor>& weights)
    : config_(config) {
  for (const auto& [name, value] : weights)
    weights_[name] = value.detach().to(at::kDouble).clone().set_requires_grad(true);
}

at::Tensor LlamaOracle::norm(const at::Tensor& x, const std::string& name) const {
  return x * at::rsqrt(at::mean(x * x, -1, true) + config_.norm_eps) * weight(name);
}

at::Tensor LlamaOracle::attention(const at::Tensor& x_BTD, const std::string& layer) const {
  const int64_t batch = x_BTD.size(0), seq = x_BTD.size(1), dim = config_.head_dim();
  const auto heads = [&](const char* name, int64_t count) {
    return at::matmul(x_BTD, weight(layer + name).t()).view({batch, seq, count, dim}).transpose(1, 2);
  };
  const int64_t group = config_.heads / config_.num_kv_heads();
  const at::Tensor q = rotary(heads("self_attn.q_proj.weight", config_.heads), config_.rope_theta);
  const at::Tensor k = rotary(heads("self_attn.k_proj.weight", config_.num_kv_heads()), config_.rope_theta)
                           .repeat_interleave(group, 1);
  const at::Tensor v = heads("self_attn.v_proj.weight", config_.num_kv_heads()).repeat_interleave(group, 1);
  const at::Tensor future = at::ones({seq, seq}, at::kBool).triu(1);
  const at::Tensor scores = (at::matmul(q, k.transpose(-1, -2)) / std::sqrt(static_cast<double>(dim)))
                                .masked_fill(future, -std::numeric_limits<double>::infinity());
  const at::Tensor out =
      at::matmul(at::softmax(scores, -1), v).transpose(1, 2).reshape({batch, seq, config_.heads * dim});
  return at::matmul(out, weight(layer + "self_attn.o_proj.weight").t());
}

at::Tensor LlamaOracle::mlp(const at::Tensor& x_BTD, const std::string& layer) const {
  const at::Tensor gate = at::matmul(x_BTD, weight(layer + "mlp.gate_proj.weight").t());
  const at::Tensor up = at::matmul(x_BTD, weight(layer + "mlp.up_proj.weight").t());
  return at::matmul(gate * at::sigmoid(gate) * up, weight(layer + "mlp.down_proj.weight").t());
}

at::Tensor LlamaOracle::logits(const at::Tensor& tokens_BT) const {
  at::Tensor x = weight("model.embed_tokens.weight").index({tokens_BT.to(at::kLong)});
  for (int64_t i = 0; i < config_.layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    x = x + attention(norm(x, layer + "input_layernorm.weight"), layer);
    x = x + mlp(norm(x, layer + "post_attention_layernorm.weight"), layer);
  }
  const at::Tensor head = config_.tied ? weight("model.embed_tokens.weight") : weight("lm_head.weight");
  return at::matmul(norm(x, "model.norm.weight"), head.t());
}

at::Tensor LlamaOracle::loss_sum(const at::Tensor& tokens_BT, const at::Tensor& targets_BT) const {
  const at::Tensor log_p = at::log_softmax(logits(tokens_BT), -1).view({-1, config_.vocab_size});
  return at::nll_loss(log_p, targets_BT.reshape(-1).to(at::kLong), {}, at::Reduction::Sum, -100);
}

}  // namespace tycho
