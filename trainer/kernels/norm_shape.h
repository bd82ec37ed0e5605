// Derives the shape of a norm from its tensors.
#pragma once
#include <string_view>

#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/kernels/twins/row_extras.h"

namespace tycho {

/// Rows [N, D] that a norm adds; undefined ones are not added. Each sum is rounded to x's dtype, as an
/// addition apart would round it.
struct NormTerms {
  const Tensor& before;  // the norm is of sum = x + before
  Tensor& sum;           // written with `before`; may be x or before
  const Tensor& after;   // y = norm + after; may be y. Not together with `before`
};
/// Returns terms of which nothing is added.
NormTerms no_terms();

/// Returns the memory of terms. Throws Error that names the op when a tensor does not fit, or when rows with
/// several groups would be added.
NormAdds norm_adds(std::string_view op, const NormShape& shape, const Tensor& x_NC, NormTerms terms);

/// Returns the shape of a norm of x_NC [N, G * D] by weight_D, with x's step, and the step of y (or dy),
/// called y_name in errors. dx_step stays 0. Throws Error that names the op when a tensor does not fit.
NormShape norm_shape(std::string_view op, const Tensor& x_NC, const Tensor& weight_D, std::string_view y_name,
                     const Tensor& y_NC);

}  // namespace tycho
