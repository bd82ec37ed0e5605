// The global norm of the gradients, and clipping by it.
#include "trainer/optim/grad_clip.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include "trainer/kernels/grad_norm.h"

namespace tycho {

Tensor sum_of_squares(const std::vector<Tensor>& flats) {
  Tensor sum_1 = at::zeros({1}, flats.front().options().dtype(at::kDouble));
  for (const Tensor& flat : flats) add_sum_of_squares(flat.to(at::kFloat), sum_1);
  return sum_1;
}

GradNorm clip_gradients(const ClipConfig& config, const std::vector<Tensor>& grads) {
  const Tensor sum_1 = sum_of_squares(grads);
  const auto options = sum_1.options().dtype(at::kFloat);
  GradNorm result = {at::empty({1}, options), at::empty({1}, options)};
  clip_scale(sum_1, config.norm, result.norm_1, result.scale_1);
  return result;
}

}  // namespace tycho
