// AdamW over the units' flat buffers.
#include "trainer/optim/adamw.h"

#include <cmath>

#include "trainer/kernels/adamw_step.h"
#include "trainer/units/arena.h"

namespace tycho {

AdamW::AdamW(const AdamWConfig& config, std::vector<FlatUnit>& units)
    : config_(config), state_{{"exp_avg", {}}, {"exp_avg_sq", {}}} {
  for (FlatUnit& unit : units) {
    const int64_t numel = unit.flat_params().numel();
    for (OptimizerBuffers& buffers : state_)
      buffers.flat.push_back(
          arena_view(make_arena(numel * 4, unit.flat_params().device()), 0, {numel}, at::kFloat));
    const std::vector<Extent>& extents = unit.extents();
    for (size_t first = 0; first < extents.size();) {
      size_t end = first;
      while (end < extents.size() && extents[end].spec->decay == extents[first].spec->decay) ++end;
      const int64_t begin = extents[first].begin, length = extents[end - 1].end - begin;
      const bool separate_master = !unit.flat_master().is_same(unit.flat_params());
      segments_.push_back({extents[first].spec->decay, unit.flat_params().narrow(0, begin, length),
                           separate_master ? unit.flat_master().narrow(0, begin, length) : Tensor(),
                           unit.flat_grads().narrow(0, begin, length),
                           state_[0].flat.back().narrow(0, begin, length),
                           state_[1].flat.back().narrow(0, begin, length)});
      first = end;
    }
  }
}

void AdamW::step(double lr, int64_t step, const Tensor& grad_scale_1) {
  AdamWScalars scalars;
  scalars.lr = static_cast<float>(lr);
  scalars.beta1 = static_cast<float>(config_.betas[0]);
  scalars.beta2 = static_cast<float>(config_.betas[1]);
  scalars.eps = static_cast<float>(config_.eps);
  scalars.bias_correction1 = static_cast<float>(1.0 - std::pow(config_.betas[0], static_cast<double>(step)));
  scalars.bias_correction2 = static_cast<float>(1.0 - std::pow(config_.betas[1], static_cast<double>(step)));
  for (Segment& s : segments_) {
    scalars.weight_decay = s.decay ? static_cast<float>(config_.weight_decay) : 0.0f;
    adamw_step(scalars, grad_scale_1, s.params, s.master, s.grads, s.exp_avg, s.exp_avg_sq);
  }
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, std::vector<FlatUnit>& units) {
  return std::visit(
      [&](const AdamWConfig& adamw) -> std::unique_ptr<Optimizer> {
        return std::make_unique<AdamW>(adamw, units);
      },
      config.value);
}

}  // namespace tycho
