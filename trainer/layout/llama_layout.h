// Llama's units and activation slots, with the numbers that its code knows them by.
#pragma once
#include "trainer/layout/model_layout.h"

namespace tycho {

/// Views of a block's unit: parameters in Hugging Face's names and order, then the stacks.
namespace llama_param {
enum : int { kInputNorm, kQ, kK, kV, kO, kPostNorm, kGate, kUp, kDown, kQkv, kGateUp };
}
/// Slots that a block keeps until its backward.
namespace llama_saved {
enum : int {
  kNormedAttention,
  kInvRmsAttention,
  kQkv,
  kAttention,
  kLogSumExp,
  kMiddle,
  kNormedMlp,
  kInvRmsMlp,
  kGateUp
};
}
/// Slots that blocks share.
namespace llama_scratch {
enum : int { kHidden, kDHidden, kDQkv, kDAttention, kDNormed };
}

ModelLayout llama_layout(const LlamaConfig& config);
ActivationSpecs llama_activations(const LlamaConfig& config, BatchShape shape, int64_t compute_bytes);

}  // namespace tycho
