// Checks of Lion.
#include "trainer/kernels/optimizer/lion_step.h"

#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {

void lion_step(const LionScalars& scalars, const Tensor& grad_scale_1, const WeightTensors& weights,
               const Tensor& grads, Tensor& m) {
  const Range range("tycho::lion_step");
  const char* op = "lion_step";
  const OptimizedWeights raw = optimized_weights(op, weights);
  const auto device = weights.params.device();
  check_tensor(op, "grad_scale", grad_scale_1, {1}, at::kFloat, device);
  check_tensor(op, "grads", grads, weights.params.sizes(), at::kFloat, device);
  check_tensor(op, "m", m, weights.params.sizes(), at::kFloat, device);
  kernels(grads).lion_step(grads.numel(), scalars, grad_scale_1.const_data_ptr<float>(), raw,
                           grads.const_data_ptr<float>(), m.mutable_data_ptr<float>(), stream_of(grads));
}

}  // namespace tycho
