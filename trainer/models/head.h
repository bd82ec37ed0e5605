// The end of a model: final norm, output matrix, loss. Logits of more than a chunk of tokens never exist.
#pragma once
#include "trainer/models/activations.h"

namespace tycho {

/// Slots around the blocks, as activation_specs lists them.
namespace model_slot {
enum : int { kStream, kNormedFinal, kInvRmsFinal, kLogits, kLosses, kDStream, kDNormed };
}

// N tokens, D width, V vocabulary.
struct HeadParams {
  const Tensor& norm_D;
  const Tensor& output_VD;  // the embedding table when tied
};
struct HeadGrads {
  Tensor& norm_D;
  Tensor& output_VD;
};

/// Losses of all tokens (fp32, in slot kLosses), the gradient of their weighted sum with respect to x_ND (in
/// d_ND), and the parameters' gradients, written or added.
void head_forward_backward(HeadParams p, const Tensor& x_ND, const Tensor& targets_N, const Tensor& weight_1,
                           double norm_eps, Activations& act, HeadGrads g, bool add, Tensor& d_ND);

/// fp32 logits of the last position of each of `batch` sequences: [B, V].
Tensor head_last_logits(HeadParams p, const Tensor& x_ND, int64_t batch, double norm_eps);

}  // namespace tycho
