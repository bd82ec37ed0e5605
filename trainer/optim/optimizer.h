// The interface of optimizers.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "trainer/kernels/tensor.h"
#include "trainer/optim/config.h"
#include "trainer/optim/param_rules.h"
#include "trainer/units/flat_unit.h"

namespace tycho {

/// State of the parameters of one unit that have it: "exp_avg", fp32, one number per element.
struct StateBuffer {
  std::string name;
  std::vector<Extent> extents;  // where each parameter's lies in `flat`
  Tensor flat;
};

/// Updates the master weights of the units it was made for, and their parameters with them. Asynchronous on
/// CUDA.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// One update with learning rate lr. `step` counts from 1. Gradients are multiplied by grad_scale_1 (fp32,
  /// one element). Frozen parameters are not touched.
  virtual void step(double lr, int64_t step, const Tensor& grad_scale_1) = 0;
  /// What a checkpoint must keep besides the master weights.
  virtual std::vector<StateBuffer>& state() = 0;
};

/// `units`: all of a model, in forward order; they outlive the optimizer. `seed`: of stochastic rounding.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, std::vector<FlatUnit>& units,
                                          const ParamRules& rules, uint64_t seed = 0);
/// The same without groups.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, std::vector<FlatUnit>& units);

}  // namespace tycho
