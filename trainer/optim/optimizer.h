// What the loop asks of an optimizer.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "trainer/optim/config.h"
#include "trainer/units/flat_unit.h"

namespace tycho {

/// State that belongs to every element of every unit: "exp_avg", one flat fp32 buffer per unit, laid out like
/// the unit.
struct OptimizerBuffers {
  std::string name;
  std::vector<Tensor> flat;  // by unit
};

/// Updates the master weights of the units it was made for, and their parameters with them. Asynchronous on
/// CUDA.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// One update with learning rate lr. `step` counts from 1. Gradients are multiplied by grad_scale_1 (fp32,
  /// one element).
  virtual void step(double lr, int64_t step, const Tensor& grad_scale_1) = 0;
  /// What a checkpoint must keep besides the master weights.
  virtual std::vector<OptimizerBuffers>& state() = 0;
};

/// `units` outlives the optimizer.
std::unique_ptr<Optimizer> make_optimizer(const OptimizerConfig& config, std::vector<FlatUnit>& units);

}  // namespace tycho
