// Forms of optimized weights, and the choice among them, shared by the CPU's and the GPU's kernels.
#pragma once
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

enum class WeightForm { kFp32, kMixed, kBf16, kStochasticBf16 };

/// Calls body(Weights<form>) with the form of the weights. static: each instruction set keeps its own copy.
template <template <WeightForm> class Weights, class Body>
static void with_weight_form(const OptimizedWeights& weights, const Body& body) {
  if (weights.dtype == Dtype::kFp32)
    body(Weights<WeightForm::kFp32>{weights});
  else if (weights.master != nullptr)
    body(Weights<WeightForm::kMixed>{weights});
  else if (weights.stochastic)
    body(Weights<WeightForm::kStochasticBf16>{weights});
  else
    body(Weights<WeightForm::kBf16>{weights});
}

}  // namespace tycho
