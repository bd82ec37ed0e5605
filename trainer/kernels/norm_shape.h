// Derives the shape of a norm from its tensors.
#pragma once
#include <string_view>

#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// Returns the shape of a norm of x_NC [N, G * D] by weight_D, with x's step, and the step of y (or dy),
/// called y_name in errors. dx_step stays 0. Throws Error that names the op when a tensor does not fit.
NormShape norm_shape(std::string_view op, const Tensor& x_NC, const Tensor& weight_D, std::string_view y_name,
                     const Tensor& y_NC);

}  // namespace tycho
