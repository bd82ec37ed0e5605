// Muon over the matrices of the blocks, AdamW over everything else.
#include <ATen/ops/empty_like.h>
#include <algorithm>
#include <cmath>

#include "trainer/kernels/optimizer/muon_step.h"
#include "trainer/optim/kinds.h"
#include "trainer/optim/newton_schulz.h"

namespace tycho {
namespace {

double scale_of(MuonScale scale, const Shape& shape) {
  const auto rows = static_cast<double>(shape[0]), columns = static_cast<double>(shape[1]);
  return scale == MuonScale::kOriginal ? std::sqrt(std::max(1.0, rows / columns))
                                       : 0.2 * std::sqrt(std::max(rows, columns));
}

NewtonSchulzSpace space_for(const std::vector<Segment>& segments) {
  int64_t side = 0, elements = 0;
  for (const Segment& s : segments) {
    if (!s.rule.hidden_matrix) continue;
    side = std::max(side, std::min(s.shape[0], s.shape[1]));
    elements = std::max(elements, s.grads.numel());
  }
  const at::Device device = segments.empty() ? at::Device(at::kCPU) : segments.front().grads.device();
  return NewtonSchulzSpace(side, elements, device, newton_schulz_dtype(device));
}

class Muon final : public Optimizer {
 public:
  Muon(const MuonConfig& config, Segments segments)
      : config_(config), segments_(std::move(segments)), space_(space_for(segments_.list)) {
    update_ = at::empty_like(space_.a);
  }

  void step(double lr, int64_t step, const Tensor& grad_scale_1) override {
    for (Segment& s : segments_.list) {
      if (s.rule.hidden_matrix)
        update_matrix(s, lr, step, grad_scale_1);
      else
        adamw_update(s, lr, decay_share(s.rule, lr, config_.lr, false), config_.eps, step, grad_scale_1);
    }
  }
  std::vector<StateBuffer>& state() override { return segments_.state; }

 private:
  void update_matrix(Segment& s, double lr, int64_t step, const Tensor& grad_scale_1) {
    Tensor update = update_.narrow(0, 0, s.grads.numel()).view(s.shape);
    muon_momentum(config_.momentum, config_.nesterov, grad_scale_1, s.grads, s.state[0], update);
    newton_schulz(update, config_.ns_steps, space_);
    s.weights.step = static_cast<uint64_t>(step);
    add_update(lr * s.rule.lr_scale * scale_of(config_.adjust_lr, s.shape),
               decay_share(s.rule, lr, config_.lr, false), s.weights, update);
  }

  MuonConfig config_;
  Segments segments_;
  NewtonSchulzSpace space_;
  Tensor update_;  // of one matrix at a time
};

}  // namespace

std::unique_ptr<Optimizer> make_kind(const MuonConfig& config, Segments segments) {
  return std::make_unique<Muon>(config, std::move(segments));
}

}  // namespace tycho
