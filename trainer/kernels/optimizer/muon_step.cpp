// Checks of Muon's elementwise steps.
#include "trainer/kernels/optimizer/muon_step.h"

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/profiler/range.h"

namespace tycho {

void muon_momentum(double momentum, bool nesterov, const Tensor& grad_scale_1, const Tensor& grads, Tensor& b,
                   Tensor& update) {
  const Range range("tycho::muon_momentum");
  const char* op = "muon_momentum";
  const auto device = grads.device();
  check_tensor(op, "grad_scale", grad_scale_1, {1}, at::kFloat, device);
  check_tensor(op, "grads", grads, grads.sizes(), at::kFloat, device);
  check_tensor(op, "momentum", b, grads.sizes(), at::kFloat, device);
  TYCHO_CHECK(update.is_contiguous() && update.numel() == grads.numel(),
              "[{}] update: expected {} contiguous elements, got {}", op, grads.numel(), update.numel());
  kernels(grads).muon_momentum(grads.numel(), momentum, nesterov, grad_scale_1.const_data_ptr<float>(),
                               grads.const_data_ptr<float>(), b.mutable_data_ptr<float>(),
                               dtype_of(op, update), update.mutable_data_ptr(), stream_of(grads));
}

void add_update(double step_size, double decay, const WeightTensors& weights, const Tensor& update) {
  const Range range("tycho::add_update");
  const char* op = "add_update";
  const OptimizedWeights raw = optimized_weights(op, weights);
  TYCHO_CHECK(update.is_contiguous() && update.numel() == weights.params.numel(),
              "[{}] update: expected {} contiguous elements, got {}", op, weights.params.numel(),
              update.numel());
  kernels(update).add_update(update.numel(), step_size, decay, raw, dtype_of(op, update),
                             update.const_data_ptr(), stream_of(update));
}

}  // namespace tycho
