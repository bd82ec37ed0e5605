// The interface of optimizers.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "trainer/kernels/tensor.h"
#include "trainer/layout/unit_layout.h"
#include "trainer/optim/config.h"
#include "trainer/optim/param_rules.h"
#include "trainer/parallel/communicator.h"
#include "trainer/units/owned_range.h"

namespace tycho {

/// State of what a rank owns of one unit, of the parameters that have it: "exp_avg", fp32, one number per
/// element.
struct StateBuffer {
  std::string name;
  std::vector<Extent> extents;  // of `flat`
  Tensor flat;
};

/// Updates the master weights of the ranges it was made for, and their parameters with them. Asynchronous on
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

/// `ranges`: what this rank owns of each unit of a model, in forward order. `seed`: of stochastic rounding.
/// `owners`: the ranks that have parts of the same parameters, which outlive it; null where this rank has all
/// of each. Muon brings the parts of a matrix together: its step() is collective there. Throws Error
/// (kFailure) for a part of a parameter where the update needs all of it: stochastic rounding, and matrices
/// of Muon without owners.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          const std::vector<OwnedRange>& ranges, const ParamRules& rules,
                                          uint64_t seed = 0, Communicator* owners = nullptr);
/// The same without groups.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config,
                                          const std::vector<OwnedRange>& ranges);

}  // namespace tycho
