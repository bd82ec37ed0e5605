// One elementwise operation of an expression by ATen, on any device.
#pragma once
#include "trainer/expression/operations.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// Returns op(a, b, c) of fp32 tensors, broadcast as ATen does; comparisons give tensors of bool. Roots and
/// fma are rounded once on every device. `exponent` is b of kPow where all elements have one, else null:
/// torch.pow has its own formulas for some. A copy of `a` for kBroadcast.
Tensor aten_operation(Op op, const Tensor& a, const Tensor& b, const Tensor& c,
                      const float* exponent = nullptr);

}  // namespace tycho
