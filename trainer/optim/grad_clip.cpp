// The global norm of the gradients, and clipping by it.
#include "trainer/optim/grad_clip.h"

#include "trainer/kernels/grad_norm.h"

namespace tycho {

GradNorm clip_gradients(const ClipConfig& config, std::vector<FlatUnit>& units) {
  const auto options = units.front().flat_grads().options();
  Tensor sum_1 = at::zeros({1}, options.dtype(at::kDouble));
  for (FlatUnit& unit : units) add_sum_of_squares(unit.flat_grads(), sum_1);
  GradNorm result = {at::empty({1}, options), at::empty({1}, options)};
  clip_scale(sum_1, config.norm, result.norm_1, result.scale_1);
  return result;
}

}  // namespace tycho
