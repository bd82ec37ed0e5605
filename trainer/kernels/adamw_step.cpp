// Checks of AdamW.
#include "trainer/kernels/adamw_step.h"

#include "trainer/base/error.h"
#include "trainer/kernels/dispatch.h"

namespace tycho {

void adamw_step(const AdamWScalars& scalars, const Tensor& grad_scale_1, Tensor& params, Tensor& master,
                const Tensor& grads, Tensor& m, Tensor& v) {
  const char* op = "adamw_step";
  const Dtype dtype = dtype_of(op, params);
  const auto device = params.device();
  const auto shape = params.sizes();
  TYCHO_CHECK(params.is_contiguous(), "[adamw_step] params: wanted contiguous memory");
  TYCHO_CHECK(scalars.bias_correction1 > 0 && scalars.bias_correction2 > 0,
              "[adamw_step] bias corrections must be positive (1 - beta^step, step >= 1), got {} and {}",
              scalars.bias_correction1, scalars.bias_correction2);
  check_tensor(op, "grad_scale", grad_scale_1, {1}, at::kFloat, device);
  check_tensor(op, "grads", grads, shape, at::kFloat, device);
  check_tensor(op, "m", m, shape, at::kFloat, device);
  check_tensor(op, "v", v, shape, at::kFloat, device);
  const bool mixed = dtype == Dtype::kBf16;
  if (mixed) check_tensor(op, "master", master, shape, at::kFloat, device);
  TYCHO_CHECK(mixed || !master.defined(),
              "[adamw_step] fp32 params are their own master: pass an undefined tensor");
  kernels(params).adamw_step(params.numel(), scalars, grad_scale_1.const_data_ptr<float>(), dtype,
                             params.mutable_data_ptr(), mixed ? master.mutable_data_ptr<float>() : nullptr,
                             grads.const_data_ptr<float>(), m.mutable_data_ptr<float>(),
                             v.mutable_data_ptr<float>(), stream_of(params));
}

}  // namespace tycho
