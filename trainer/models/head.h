// The end of a model: final norm, output matrix, loss. The logits of only one chunk of tokens exist at once.
#pragma once
#include "trainer/families/decoder_spec.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/layout/decoder_layout.h"
#include "trainer/models/activations.h"
#include "trainer/models/norm.h"
#include "trainer/models/parallel_region.h"
#include "trainer/models/token_loss.h"

namespace tycho {

// N tokens, S those of this rank, D width, V vocabulary, or what this rank has of it, with its zero rows.
struct HeadParams {
  NormParams norm;
  const Tensor& output_VD;  // the embedding table when tied
};
/// Rules of a family's head, and the ranks that share it.
struct HeadRules {
  Norm norm;
  LogitRules logits;
  int64_t first_vocab;  // token of the output's first row
  int64_t vocab;        // tokens of all ranks along tp
  ParallelRegion region;
  TokenLoss loss;
  /// `spec`: of this rank along tp.
  HeadRules(const DecoderSpec& spec, int64_t whole_vocab, const ParallelRegion& with,
            TokenLoss minimised = {});
};
struct HeadGrads {
  NormGrads norm;
  Tensor& output_VD;  // undefined: not computed
};

/// Computes the losses of all tokens (fp32, in slot kLosses), the gradient of weight_1 times their sum with
/// respect to x_SD (in d_SD), and the parameters' gradients, written or added.
void head_forward_backward(const HeadRules& rules, HeadParams p, const Tensor& x_SD, const LossTokens& tokens,
                           const Tensor& weight_1, Activations& act, HeadGrads g, bool add, Tensor& d_SD);
/// Computes only the losses, in slot kLosses.
void head_losses(const HeadRules& rules, HeadParams p, const Tensor& x_SD, const LossTokens& tokens,
                 Activations& act);

/// Returns fp32 logits of the last position of each of `batch` sequences, [B, all of the vocabulary].
/// Requires that every rank has all tokens.
Tensor head_last_logits(const HeadRules& rules, HeadParams p, const Tensor& x_ND, int64_t batch,
                        int64_t vocab_size);

}  // namespace tycho
