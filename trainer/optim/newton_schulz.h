// An orthogonal matrix close to a given one, by matrix products alone.
#pragma once
#include "trainer/kernels/tensor.h"

namespace tycho {

/// Returns the dtype of Newton-Schulz iterations: bf16 where the device multiplies it faster, else fp32.
at::ScalarType newton_schulz_dtype(const at::Device& device);

/// Workspace of newton_schulz for matrices whose shorter side is at most `side`.
struct NewtonSchulzSpace {
  NewtonSchulzSpace(int64_t side, int64_t most_elements, const at::Device& device, at::ScalarType dtype);
  at::ScalarType dtype;
  Tensor a, b;          // a matrix and the next iterate
  Tensor gram, square;  // of the shorter side
};

/// Replaces x_AB (dtype of the space, contiguous; either side may be longer) by about U Vᵀ of its singular
/// value decomposition: `steps` times X = a X + (b X Xᵀ + c (X Xᵀ)²) X with Jordan's coefficients, starting
/// from X / |X|. These bring all singular values between 0.7 and 1.2.
void newton_schulz(Tensor& x_AB, int64_t steps, NewtonSchulzSpace& space);

}  // namespace tycho
