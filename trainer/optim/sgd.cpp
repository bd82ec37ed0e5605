// SGD with momentum over the units' flat buffers.
#include "trainer/kernels/optimizer/sgd_step.h"
#include "trainer/optim/kinds.h"

namespace tycho {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const SgdConfig& config, Segments segments) : config_(config), segments_(std::move(segments)) {}

  void step(double lr, int64_t step, const Tensor& grad_scale_1) override {
    for (Segment& s : segments_.list) {
      const SgdScalars scalars = {lr * s.rule.lr_scale, config_.momentum, s.rule.weight_decay,
                                  config_.nesterov};
      s.weights.step = static_cast<uint64_t>(step);
      Tensor momentum = s.state.empty() ? Tensor() : s.state[0];
      sgd_step(scalars, grad_scale_1, s.weights, s.grads, momentum);
    }
  }
  std::vector<StateBuffer>& state() override { return segments_.state; }

 private:
  SgdConfig config_;
  Segments segments_;
};

}  // namespace

std::unique_ptr<Optimizer> make_kind(const SgdConfig& config, Segments segments) {
  return std::make_unique<Sgd>(config, std::move(segments));
}

}  // namespace tycho
