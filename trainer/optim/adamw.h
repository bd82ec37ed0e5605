// AdamW over the units' flat buffers.
#pragma once
#include "trainer/optim/optimizer.h"

namespace tycho {

class AdamW final : public Optimizer {
 public:
  AdamW(const AdamWConfig& config, std::vector<FlatUnit>& units);
  void step(double lr, int64_t step, const Tensor& grad_scale_1) override;
  std::vector<OptimizerBuffers>& state() override { return state_; }

 private:
  // A stretch of one unit whose parameters decay, or do not: views, made once.
  struct Segment {
    bool decay;
    Tensor params, master, grads, exp_avg, exp_avg_sq;
  };
  AdamWConfig config_;
  std::vector<OptimizerBuffers> state_;
  std::vector<Segment> segments_;
};

}  // namespace tycho
