// LayerNorm, forward and backward.
#pragma once
#include "trainer/kernels/fp8.h"
#include "trainer/kernels/norm_shape.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// y = (x - mean) / sqrt(var + eps) * weight (+ bias_D where defined), statistics over every D consecutive
/// elements in fp32, var without Bessel's correction (Ba et al. 2016, arXiv:1607.06450). x_NC, y_NC: [N, G *
/// D], fp32 or bf16; rows need not be contiguous, so that they can be views of packed rows (qkv.narrow(1, 0,
/// G * D)); the G groups of a row are normed separately and share weight_D, bias_D [D], which have x's dtype.
/// mean_S, inv_std_S: fp32 [N * G], kept for backward. y may be x. terms: rows that are added, and cast: a
/// cast of y to fp8 that is made, in the same pass.
void layer_norm(const Tensor& x_NC, const Tensor& weight_D, const Tensor& bias_D, double eps, Tensor& y_NC,
                Tensor& mean_S, Tensor& inv_std_S, NormTerms terms = no_terms(), RowCast* cast = nullptr);

/// dx_NC (+)= the gradient with respect to x; dweight_D, dbias_D (fp32) (+)= those of weight and bias, unless
/// they are undefined. Rows of x, dy and dx need not be contiguous; dx may be dy unless it is added to.
/// Repeatable: partial sums are added in a fixed order for any number of threads.
void layer_norm_backward(const Tensor& x_NC, const Tensor& weight_D, const Tensor& mean_S,
                         const Tensor& inv_std_S, const Tensor& dy_NC, Tensor& dx_NC, bool add_to_dx,
                         Tensor& dweight_D, Tensor& dbias_D, bool add_to_dweight);

}  // namespace tycho
