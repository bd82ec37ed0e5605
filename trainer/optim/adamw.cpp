// AdamW over the units' flat buffers.
#include "trainer/kernels/optimizer/adamw_step.h"

#include <cmath>

#include "trainer/optim/kinds.h"

namespace tycho {
namespace {

class AdamW final : public Optimizer {
 public:
  AdamW(double peak, double eps, bool decoupled, Segments segments)
      : peak_(peak), eps_(eps), decoupled_(decoupled), segments_(std::move(segments)) {}

  void step(double lr, int64_t step, const Tensor& grad_scale_1) override {
    for (Segment& s : segments_.list)
      adamw_update(s, lr, decay_share(s.rule, lr, peak_, decoupled_), eps_, step, grad_scale_1);
  }
  std::vector<StateBuffer>& state() override { return segments_.state; }

 private:
  double peak_, eps_;
  bool decoupled_;
  Segments segments_;
};

}  // namespace

void adamw_update(Segment& segment, double lr, double decay, double eps, int64_t step,
                  const Tensor& grad_scale_1) {
  const auto [beta1, beta2] = segment.rule.betas;
  AdamWScalars scalars;
  scalars.lr = lr * segment.rule.lr_scale;
  scalars.beta1 = beta1, scalars.beta2 = beta2, scalars.eps = eps, scalars.decay = decay;
  scalars.bias_correction1 = 1.0 - std::pow(beta1, static_cast<double>(step));
  scalars.bias_correction2 = 1.0 - std::pow(beta2, static_cast<double>(step));
  segment.weights.step = static_cast<uint64_t>(step);
  adamw_step(scalars, grad_scale_1, segment.weights, segment.grads, segment.state[0], segment.state[1]);
}

template <Decay decay>
std::unique_ptr<Optimizer> make_kind(const AdamWKind<decay>& config, Segments segments) {
  return std::make_unique<AdamW>(config.lr, config.eps, config.kDecoupled, std::move(segments));
}
template std::unique_ptr<Optimizer> make_kind(const AdamWConfig&, Segments);
template std::unique_ptr<Optimizer> make_kind(const DecoupledAdamWConfig&, Segments);

}  // namespace tycho
