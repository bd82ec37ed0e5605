// A decoder for tests: plain ATen with autograd, written from the papers and the reference models, sharing no
// arithmetic with the engine.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "tests/trainer/aten.h"
#include "trainer/families/decoder_spec.h"

namespace tycho {

class DecoderOracle {
 public:
  /// Leaves in double with the given values; names are Hugging Face's.
  DecoderOracle(const DecoderSpec& spec, const std::map<std::string, at::Tensor>& weights);

  /// [B, T, V] logits in double.
  at::Tensor logits(const at::Tensor& tokens_BT) const;
  /// Sum over valid tokens of -log p(target).
  at::Tensor loss_sum(const at::Tensor& tokens_BT, const at::Tensor& targets_BT) const;
  const std::map<std::string, at::Tensor>& weights() const { return weights_; }
  /// What attention's weights of a layer, [B, H, T, T], are multiplied with; nothing unless it is set.
  std::function<at::Tensor(int64_t layer)> attention_factors;
  /// Numbers [B, T]: tokens see equal ones only; undefined: all.
  at::Tensor documents_BT;
  /// What an engine of this dtype keeps between its operators is rounded to it, and so are its gradients: how
  /// far the result is then from that in double is what rounding does to this model.
  at::ScalarType rounds_to = at::kDouble;

 private:
  /// x as it is kept.
  at::Tensor kept(const at::Tensor& x) const {
    return rounds_to == at::kDouble ? x : x.to(rounds_to).to(at::kDouble);
  }
  at::Tensor weight(const std::string& name) const { return weights_.at(name); }
  at::Tensor linear(const at::Tensor& x, const std::string& name) const;
  at::Tensor norm(const at::Tensor& x, const std::string& name, const NormSpec& norm) const;
  at::Tensor heads_normed(const at::Tensor& x_BTE, const std::string& name) const;
  at::Tensor scores(const at::Tensor& q_BHTd, const at::Tensor& k_BHTd, const BlockSpec& block) const;
  at::Tensor longer_queries(const at::Tensor& q_BHTd, const BlockSpec& block) const;
  /// Keys and values of a block, [B, K, T, d] each.
  struct KeysValues {
    at::Tensor k, v;
  };
  /// x_of_kv_BTD: what keys and values are projected from. kv: of the blocks so far; its own are added.
  at::Tensor attention(const at::Tensor& x_BTD, const at::Tensor& x_of_kv_BTD, int64_t number,
                       std::vector<KeysValues>& kv) const;
  at::Tensor feed_forward(const at::Tensor& x_BTD, const std::string& layer) const;

  DecoderSpec spec_;
  AttentionSpec attn_;
  std::map<std::string, at::Tensor> weights_;
};

}  // namespace tycho
