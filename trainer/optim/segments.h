// Common to all optimizers: state buffers, and ranges of units that are updated alike.
#pragma once
#include <vector>

#include "trainer/kernels/optimizer/optimized_weights.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/param_spec.h"
#include "trainer/optim/config.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/param_rules.h"
#include "trainer/units/flat_unit.h"

namespace tycho {

/// A stretch of one unit whose parameters have the same rule, or one parameter: flat views, made once.
struct Segment {
  ParamRule rule;
  Shape shape;  // of the parameter, when it is one
  WeightTensors weights;
  Tensor grads;
  std::vector<Tensor> state;  // in the order of state_names
};

struct Segments {
  std::vector<StateBuffer> state;  // by name, then by unit
  std::vector<Segment> list;       // frozen parameters are left out
};

/// Takes zeroed memory for all state. Neighbours with the same rule share a segment, but for matrices of
/// Muon and for weights that are rounded stochastically.
Segments make_segments(const OptimizerConfig& config, std::vector<FlatUnit>& units, const ParamRules& rules,
                       uint64_t seed);

/// The gradients that are trained by, as flat views: what the global norm is of.
std::vector<Tensor> trained_grads(const std::vector<FlatUnit>& units, const ParamRules& rules);

}  // namespace tycho
