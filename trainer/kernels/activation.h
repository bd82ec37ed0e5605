// Activations between the matrices of a feed-forward: alone, after a bias, or times a second half.
#pragma once
#include "trainer/base/activation.h"
#include "trainer/kernels/fp8.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

// fp32 or bf16, contiguous, arithmetic in fp32. The backward functions compute y again, which is cheaper than
// keeping it.

/// y = f(x), of any shape. y may be x.
void activation(Activation f, const Tensor& x, Tensor& y);
/// dx = dy f'(x), and y = f(x). dx and y may each be x or dy, but not the same.
void activation_backward(Activation f, const Tensor& x, const Tensor& dy, Tensor& dx, Tensor& y);

/// y = f(x + bias_M); x and y are [N, M]. y may be x.
void bias_activation(Activation f, const Tensor& bias_M, const Tensor& x_NM, Tensor& y_NM);
/// dx = dy f'(x + bias), y = f(x + bias), and dbias_M (fp32) = the sums of dx's columns, or += them;
/// undefined: not computed. dx and y may each be x or dy, but not both the same tensor. The result does not
/// depend on the number of threads.
void bias_activation_backward(Activation f, const Tensor& bias_M, const Tensor& x_NM, const Tensor& dy_NM,
                              Tensor& dx_NM, Tensor& y_NM, Tensor& dbias_M, bool add);

/// y = f(gate) * up; gate_up_N2F: [N, 2F], gate first; y_NF. SwiGLU where f is silu.
///                                                                       (Shazeer 2020, arXiv:2002.05202)
void gated_activation(Activation f, const Tensor& gate_up_N2F, Tensor& y_NF);
/// gated_activation, bias_activation or, with an undefined bias, activation: y_NF of bf16, and a cast of it.
/// y may be undefined where cast.is_made(): it is not written then.
void activation_with_cast(Activation f, bool gated, const Tensor& bias_F, const Tensor& x, Tensor& y_NF,
                          RowCast& cast);
/// dgate_up_N2F from dy_NF, and y_NF. dgate_up may be gate_up; y may be dy.
void gated_activation_backward(Activation f, const Tensor& gate_up_N2F, const Tensor& dy_NF,
                               Tensor& dgate_up_N2F, Tensor& y_NF);

}  // namespace tycho
