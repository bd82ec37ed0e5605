// RMSNorm, forward and backward.
#pragma once
#include "trainer/kernels/fp8.h"
#include "trainer/kernels/norm_shape.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// y = x / rms(x) * (weight_offset + weight), rms over every D consecutive elements, all in fp32 (Zhang &
/// Sennrich 2019, arXiv:1910.07467). Offset 1 is for weights stored around 0, as in Gemma. x_NC, y_NC: [N, G
/// * D], fp32 or bf16; rows need not be contiguous, so that they can be views of packed rows; the G groups of
/// a row are normed separately and share weight_D, of x's dtype. inv_rms_S: fp32 [N * G], kept for backward.
/// y may be x. terms: rows that are added, and cast: a cast
/// of y to fp8 that is made, in the same pass.
void rms_norm(const Tensor& x_NC, const Tensor& weight_D, double weight_offset, double eps, Tensor& y_NC,
              Tensor& inv_rms_S, NormTerms terms = no_terms(), RowCast* cast = nullptr);

/// dx (+)= the gradient with respect to x; dweight_D (fp32) (+)= the one with respect to weight, unless it is
/// undefined. Rows of x, dy and dx need not be contiguous; dx may be dy unless it is added to. Repeatable:
/// partial sums are added in a fixed order for any number of threads.
void rms_norm_backward(const Tensor& x_NC, const Tensor& weight_D, double weight_offset,
                       const Tensor& inv_rms_S, const Tensor& dy_NC, Tensor& dx_NC, bool add_to_dx,
                       Tensor& dweight_D, bool add_to_dweight);

}  // namespace tycho
