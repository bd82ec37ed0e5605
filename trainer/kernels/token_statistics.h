// Statistics of each token's logits that losses are made of, and the gradient of such losses.
#pragma once
#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

// N tokens, V logits of each: the vocabulary, or the part of it that this rank has. Elements of a row after
// rules.count are no logits, see cross_entropy.h.

/// Target of a token whose target's logit another rank has. Its statistic kTargetLogit is 0.
inline constexpr int32_t kTargetElsewhere = -1;

/// Computes statistics_SN, fp32 [kTokenStatistics, N], of logits x = rules(logits_NV), fp32 or bf16
/// contiguous. With p = softmax(x): log sum e^x, x[target], sum x / V, max x, sum p x, and three numbers for
/// the gradient. Targets int32; all are 0 where ignored. NaN in a row makes kLogSumExp and kMaxLogit NaN.
void token_statistics(const LogitRules& rules, const Tensor& logits_NV, const Tensor& targets_N,
                      Tensor& statistics_SN);

/// Overwrites logits_NV, which token_statistics has read, with their gradient, given `gradients_5N`, fp32
/// [kLossStatistics, N], the derivatives of a loss by its statistics. With V the whole vocabulary, `vocab`:
///
///   d lse / d x[i] = p[i]              d target / d x[i] = 1 at the target
///   d mean / d x[i] = 1 / V            d max / d x[i] = 1 / (number of largest logits) at each of them
///   d px / d x[i] = p[i] (1 + x[i] - px),  since d p[j] / d x[i] = p[j] (1 at i = j, minus p[i])
///
/// so that with a = d_lse + d_px (1 - px), e = d_px, b = d_target, c = d_mean and d = d_max / number,
///
///   gradient[i] = weight ((a + e x[i]) p[i] + b at the target + c / V + d at the largest) rules'(logit[i]).
///
/// Equal largest logits share the gradient of max, as autograd's amax does (its max picks one of them), so
/// that it does not depend on how ranks divide the vocabulary. Ignored rows become 0, whatever their
/// gradients are. weight_1 fp32, one element. With a part of the vocabulary the statistics are those of all
/// ranks.
void token_statistics_backward(const LogitRules& rules, int64_t vocab, Tensor& logits_NV,
                               const Tensor& targets_N, const Tensor& statistics_SN,
                               const Tensor& gradients_5N, const Tensor& weight_1);

}  // namespace tycho
