// The interface of optimizers.
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/param_rules.h"
#include "trainer/layout/param_spec.h"
#include "trainer/layout/unit_layout.h"
#include "trainer/recipe/optim.h"
#include "trainer/sharding/owned_range.h"

namespace tycho {

/// Optimizer state of a rank's part of one unit, for the parameters that have it: "exp_avg", fp32. State with
/// a shape of its own is whole on every rank that has a part of the parameter.
struct StateBuffer {
  std::string name;
  std::vector<Extent> extents;  // of `flat`
  Tensor flat;
  std::shared_ptr<std::deque<ParamSpec>> own_shapes;  // specs with the parameter's name and the state's shape
};

/// Updates the master weights of its ranges, and the parameters with them. Asynchronous on CUDA.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Does one update with learning rate lr. `step` counts from 1. Gradients are multiplied by grad_scale_1
  /// (fp32, one element). Frozen parameters are unchanged.
  virtual void step(double lr, int64_t step, const Tensor& grad_scale_1) = 0;
  /// Returns the state that a checkpoint must keep in addition to the master weights.
  virtual std::vector<StateBuffer>& state() = 0;
  /// Writes the weights that evaluations and exports use after `step` updates into `average`, which has all
  /// trained parameters of the ranges; the optimizer's state and the weights stay. Only for optimizers with
  /// eval_weights.
  virtual void write_eval_weights(int64_t step, const std::vector<StateBuffer>& average);
};

}  // namespace tycho
