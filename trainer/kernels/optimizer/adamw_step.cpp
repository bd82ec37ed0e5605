// Checks of AdamW.
#include "trainer/kernels/optimizer/adamw_step.h"

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {

void adamw_step(const AdamWScalars& scalars, const Tensor& grad_scale_1, const WeightTensors& weights,
                const Tensor& grads, Tensor& m, Tensor& v) {
  const Range range("tycho::adamw_step");
  const char* op = "adamw_step";
  const OptimizedWeights raw = optimized_weights(op, weights);
  const auto shape = weights.params.sizes();
  const auto device = weights.params.device();
  TYCHO_CHECK(scalars.bias_correction1 > 0 && scalars.bias_correction2 > 0,
              "[adamw_step] bias corrections must be positive (1 - beta^step, step >= 1), got {} and {}",
              scalars.bias_correction1, scalars.bias_correction2);
  check_tensor(op, "grad_scale", grad_scale_1, {1}, at::kFloat, device);
  check_tensor(op, "grads", grads, shape, at::kFloat, device);
  check_tensor(op, "m", m, shape, at::kFloat, device);
  check_tensor(op, "v", v, shape, at::kFloat, device);
  kernels(grads).adamw_step(grads.numel(), scalars, grad_scale_1.const_data_ptr<float>(), raw,
                            grads.const_data_ptr<float>(), m.mutable_data_ptr<float>(),
                            v.mutable_data_ptr<float>(), stream_of(grads));
}

}  // namespace tycho
