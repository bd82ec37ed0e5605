// Newton-Schulz iterations over the matrix products of the models.
#include "trainer/optim/newton_schulz.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <algorithm>

#include "trainer/kernels/matmul.h"

namespace tycho {
namespace {

// The quintic of kellerjordan.github.io/posts/muon: steepest at 0 of those that stay below 1.2.
constexpr double kA = 3.4445, kB = -4.7750, kC = 2.0315;
constexpr double kSmallestNorm = 1e-7;

Tensor part(const Tensor& memory, int64_t rows, int64_t columns) {
  return memory.narrow(0, 0, rows * columns).view({rows, columns});
}

}  // namespace

at::ScalarType newton_schulz_dtype(const at::Device& device) {
  return bf16_is_native(device) ? at::kBFloat16 : at::kFloat;
}

NewtonSchulzSpace::NewtonSchulzSpace(int64_t side, int64_t most_elements, const at::Device& device,
                                     at::ScalarType dtype)
    : dtype(dtype) {
  const auto options = at::TensorOptions(device).dtype(dtype);
  a = at::empty({most_elements}, options), b = at::empty({most_elements}, options);
  gram = at::empty({side * side}, options), square = at::empty_like(gram);
}

void newton_schulz(Tensor& x_AB, int64_t steps, NewtonSchulzSpace& space) {
  const bool tall = x_AB.size(0) > x_AB.size(1);
  const int64_t rows = std::min(x_AB.size(0), x_AB.size(1)), columns = std::max(x_AB.size(0), x_AB.size(1));
  Tensor x = part(space.a, rows, columns), next = part(space.b, rows, columns);
  Tensor gram = part(space.gram, rows, rows), square = part(space.square, rows, rows);
  x.copy_(tall ? x_AB.t() : x_AB);
  x.div_(x.norm().clamp_min_(kSmallestNorm));
  for (int64_t i = 0; i < steps; ++i) {
    matmul_nt(x, x, gram);
    matmul_nt(gram, gram, square);  // symmetric, so it is its own transpose
    square.mul_(kC).add_(gram, kB);
    matmul_nn(square, x, next);
    next.add_(x, kA);
    std::swap(x, next);
  }
  x_AB.copy_(tall ? x.t() : x);
}

}  // namespace tycho
