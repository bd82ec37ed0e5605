// Checks of SGD.
#include "trainer/kernels/optimizer/sgd_step.h"

#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {

void sgd_step(const SgdScalars& scalars, const Tensor& grad_scale_1, const WeightTensors& weights,
              const Tensor& grads, Tensor& b) {
  const Range range("tycho::sgd_step");
  const char* op = "sgd_step";
  const OptimizedWeights raw = optimized_weights(op, weights);
  const auto device = weights.params.device();
  check_tensor(op, "grad_scale", grad_scale_1, {1}, at::kFloat, device);
  check_tensor(op, "grads", grads, weights.params.sizes(), at::kFloat, device);
  if (scalars.momentum != 0) check_tensor(op, "momentum", b, weights.params.sizes(), at::kFloat, device);
  kernels(grads).sgd_step(grads.numel(), scalars, grad_scale_1.const_data_ptr<float>(), raw,
                          grads.const_data_ptr<float>(),
                          scalars.momentum != 0 ? b.mutable_data_ptr<float>() : nullptr, stream_of(grads));
}

}  // namespace tycho
