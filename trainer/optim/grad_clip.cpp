// One norm over all flat buffers, left on the device.
#include "trainer/optim/grad_clip.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>

#include "trainer/base/error.h"
#include "trainer/kernels/optimizer/grad_norm.h"

namespace tycho {

namespace {

/// Rows of a matrix, and a vector as a whole, scaled to `ratio` of their weights' norm.
void clip_rows(double ratio, const Shape& shape, const Tensor& weights, Tensor& grad) {
  const bool vector = shape.size() <= 1;
  const int64_t rows = vector ? 1 : shape[0];
  const auto norms = [&](const Tensor& flat) {
    return at::linalg_vector_norm(flat.view({rows, -1}).to(at::kFloat), 2, at::IntArrayRef({1}),
                                  /*keepdim=*/true);
  };
  const Tensor scale = norms(weights).mul_(ratio).div_(norms(grad)).nan_to_num_(1.0).clamp_max_(1.0);
  grad.view({rows, -1}).mul_(scale);
}

}  // namespace

Tensor sum_of_squares(const std::vector<Tensor>& flats) {
  Tensor sum_1 = at::zeros({1}, flats.front().options().dtype(at::kDouble));
  for (const Tensor& flat : flats)
    if (flat.numel() > 0) add_sum_of_squares(flat.to(at::kFloat), sum_1);
  return sum_1;
}

GradNorm clip_gradients(const ClipConfig& config, const std::vector<Tensor>& grads, Communicator& owners) {
  Tensor sum_1 = sum_of_squares(grads);
  owners.all_reduce(sum_1);
  const auto options = sum_1.options().dtype(at::kFloat);
  GradNorm result = {at::empty({1}, options), at::empty({1}, options)};
  clip_scale(sum_1, config.by_element_or_row() ? 0 : config.norm, result.norm_1, result.scale_1);
  return result;
}

void clip_in_place(const ClipConfig& config, const std::vector<OwnedRange>& ranges, const ParamRules& rules) {
  if (!config.by_element_or_row()) return;
  for (size_t u = 0; u < ranges.size(); ++u)
    for (const Extent& e : ranges[u].extents) {
      if (rules[u][e.param].frozen) continue;
      Tensor grad = ranges[u].grads.narrow(0, e.begin, e.size());
      if (config.value) grad.clamp_(-*config.value, *config.value);
      if (!config.adaptive) continue;
      TYCHO_CHECK(e.is_whole(), "[clip] clip.adaptive needs all of {}, and this rank owns elements {} to {}",
                  e.spec->name, e.first, e.first + e.size());
      clip_rows(*config.adaptive, e.spec->shape, ranges[u].master.narrow(0, e.begin, e.size()), grad);
    }
}

}  // namespace tycho
