// Lion over the units' flat buffers.
#include "trainer/kernels/optimizer/lion_step.h"
#include "trainer/optim/kinds.h"

namespace tycho {
namespace {

class Lion final : public Optimizer {
 public:
  Lion(double peak, bool decoupled, Segments segments)
      : peak_(peak), decoupled_(decoupled), segments_(std::move(segments)) {}

  void step(double lr, int64_t step, const Tensor& grad_scale_1) override {
    for (Segment& s : segments_.list) {
      const auto [beta1, beta2] = s.rule.betas;
      const LionScalars scalars = {lr * s.rule.lr_scale, beta1, beta2,
                                   decay_share(s.rule, lr, peak_, decoupled_)};
      s.weights.step = static_cast<uint64_t>(step);
      lion_step(scalars, grad_scale_1, s.weights, s.grads, s.state[0]);
    }
  }
  std::vector<StateBuffer>& state() override { return segments_.state; }

 private:
  double peak_;
  bool decoupled_;
  Segments segments_;
};

}  // namespace

template <Decay decay>
std::unique_ptr<Optimizer> make_kind(const LionKind<decay>& config, Segments segments) {
  return std::make_unique<Lion>(config.lr, config.kDecoupled, std::move(segments));
}
template std::unique_ptr<Optimizer> make_kind(const LionConfig&, Segments);
template std::unique_ptr<Optimizer> make_kind(const DecoupledLionConfig&, Segments);

}  // namespace tycho
