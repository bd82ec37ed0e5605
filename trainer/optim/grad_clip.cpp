// One norm over all flat buffers, left on the device.
#include "trainer/optim/grad_clip.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>

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
  for (const Tensor& flat : flats) add_sum_of_squares(flat.to(at::kFloat), sum_1);
  return sum_1;
}

GradNorm clip_gradients(const ClipConfig& config, const std::vector<Tensor>& grads) {
  const Tensor sum_1 = sum_of_squares(grads);
  const auto options = sum_1.options().dtype(at::kFloat);
  GradNorm result = {at::empty({1}, options), at::empty({1}, options)};
  clip_scale(sum_1, config.by_element_or_row() ? 0 : config.norm, result.norm_1, result.scale_1);
  return result;
}

void clip_in_place(const ClipConfig& config, std::vector<FlatUnit>& units, const ParamRules& rules) {
  if (!config.by_element_or_row()) return;
  for (size_t u = 0; u < units.size(); ++u) {
    const std::vector<Extent>& extents = units[u].extents();
    for (size_t i = 0; i < extents.size(); ++i) {
      if (rules[u][i].frozen) continue;
      const auto part = [&](const Tensor& flat) {
        return flat.narrow(0, extents[i].begin, extents[i].end - extents[i].begin);
      };
      Tensor grad = part(units[u].flat_grads());
      if (config.value) grad.clamp_(-*config.value, *config.value);
      if (config.adaptive)
        clip_rows(*config.adaptive, extents[i].spec->shape, part(units[u].flat_master()), grad);
    }
  }
}

}  // namespace tycho
