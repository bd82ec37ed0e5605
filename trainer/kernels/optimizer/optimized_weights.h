// The weights that an optimizer's kernel updates, as tensors.
#pragma once
#include <string_view>

#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// OptimizedWeights as tensors. params: contiguous, fp32 or bf16; master: fp32 of the same shape, or
/// undefined.
struct WeightTensors {
  Tensor params, master;
  bool stochastic = false;
  uint64_t key = 0, step = 0;
  ParamRuns place = {};
};

/// Returns the raw form. Throws Error that names the op when a tensor has the wrong dtype, shape or layout,
/// or when fp32 params have a master.
OptimizedWeights optimized_weights(std::string_view op, const WeightTensors& weights);

}  // namespace tycho
