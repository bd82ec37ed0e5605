// The fused classifier: softmax, loss and gradient in one pass over the logits.
#pragma once
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// Targets with this value have no loss and no gradient.
inline constexpr int32_t kIgnoredTarget = -100;

/// Requires that rows of `dim` elements have as many logits as the rules say.
void check_count(const char* op, const LogitRules& rules, int64_t dim);

/// losses_N[n] (fp32) = -log softmax(rules(logits_NV[n]))[targets_N[n]], 0 where ignored. With
/// write_gradient, logits become weight * d(sum of losses)/d(logits) in place. logits fp32 or bf16
/// contiguous; targets int32; weight_1 fp32, one element. Elements of a row after rules.count are no logits:
/// they may be anything, and their gradient is 0.
void cross_entropy(const LogitRules& rules, Tensor& logits_NV, const Tensor& targets_N,
                   const Tensor& weight_1, bool write_gradient, Tensor& losses_N);

}  // namespace tycho
