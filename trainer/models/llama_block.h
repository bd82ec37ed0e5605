// Llama's block: norm, attention, norm, SwiGLU, each around the residual stream.
#pragma once
#include "trainer/models/block.h"
#include "trainer/models/self_attention.h"

namespace tycho {

class LlamaBlock final : public Block {
 public:
  LlamaBlock(const LlamaConfig& config, BatchShape shape, const at::Device& device);
  void forward(const Views& p, const Tensor& x_ND, BlockActivations act, Tensor& y_ND) const override;
  void backward(const Views& p, const Tensor& x_ND, BlockActivations act, Views& g, bool add,
                Tensor& d_ND) const override;
  Tensor forward_cached(const Views& p, const Tensor& x_ND, KvCache& cache, int64_t layer) const override;

 private:
  double norm_eps_;
  SelfAttention attention_;
};

}  // namespace tycho
