// An orthogonal matrix close to a given one, by matrix products alone.
#pragma once
#include "trainer/kernels/tensor.h"

namespace tycho {

/// What Newton-Schulz iterations are computed in: bf16 where the device multiplies that faster, else fp32.
at::ScalarType newton_schulz_dtype(const at::Device& device);

/// Memory that newton_schulz works in, for matrices whose shorter side is at most `side`.
struct NewtonSchulzSpace {
  NewtonSchulzSpace(int64_t side, int64_t most_elements, const at::Device& device, at::ScalarType dtype);
  at::ScalarType dtype;
  Tensor a, b;          // a matrix and the next
  Tensor gram, square;  // of its shorter side
};

/// x_AB (dtype of the space, contiguous; any of A, B the longer) becomes about U Vᵀ of its singular value
/// decomposition: `steps` times X = a X + (b X Xᵀ + c (X Xᵀ)²) X with Jordan's coefficients, which put all
/// singular values between 0.7 and 1.2, from X / |X|.
void newton_schulz(Tensor& x_AB, int64_t steps, NewtonSchulzSpace& space);

}  // namespace tycho
