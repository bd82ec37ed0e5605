// A transformer block: the part of a model that is repeated.
#pragma once
#include "trainer/models/activations.h"
#include "trainer/models/kv_cache.h"

namespace tycho {

// N tokens, D width.
/// One object serves all blocks of a model: what differs is handed in. Written for one device; no state.
class Block {
 public:
  virtual ~Block() = default;
  /// y_ND from x_ND; keeps in `act` what backward needs besides x.
  virtual void forward(const Views& params, const Tensor& x_ND, BlockActivations act, Tensor& y_ND) const = 0;
  /// d_ND is the gradient of y on entry and of x on return. Parameter gradients are written to `grads`, or
  /// added when `add`.
  virtual void backward(const Views& params, const Tensor& x_ND, BlockActivations act, Views& grads, bool add,
                        Tensor& d_ND) const = 0;
  /// For generation: x_ND are the tokens that follow those in the cache (B sequences of N / B each); their
  /// keys and values are added to it. Returns y_ND.
  virtual Tensor forward_cached(const Views& params, const Tensor& x_ND, KvCache& cache,
                                int64_t layer) const = 0;
};

/// The block of a family. `dtype` and `device` are those of its activations; seq is the longest sequence it
/// will see.
std::unique_ptr<Block> make_block(const ModelConfig& config, BatchShape shape, const at::Device& device);

}  // namespace tycho
