// A Llama for tests: plain ATen with autograd, written from the papers and Hugging Face's definition, sharing
// no code with the engine.
#pragma once
#include <ATen/ATen.h>

#include <map>
#include <string>

#include "trainer/models/config.h"

namespace tycho {

class LlamaOracle {
 public:
  /// Leaves in double with the given values; names are Hugging Face's.
  LlamaOracle(const LlamaConfig& config, const std::map<std::string, at::Tensor>& weights);

  /// [B, T, V] logits in double.
  at::Tensor logits(const at::Tensor& tokens_BT) const;
  /// Sum over valid tokens of -log p(target).
  at::Tensor loss_sum(const at::Tensor& tokens_BT, const at::Tensor& targets_BT) const;
  const std::map<std::string, at::Tensor>& weights() const { return weights_; }

 private:
  at::Tensor weight(const std::string& name) const { return weights_.at(name); }
  at::Tensor norm(const at::Tensor& x, const std::string& name) const;
  at::Tensor attention(const at::Tensor& x_BTD, const std::string& layer) const;
  at::Tensor mlp(const at::Tensor& x_BTD, const std::string& layer) const;

  LlamaConfig config_;
  std::map<std::string, at::Tensor> weights_;
};

}  // namespace tycho
