// Common to all optimizers: state buffers, and ranges of units that are updated alike.
#pragma once
#include <vector>

#include "trainer/kernels/optimizer/optimized_weights.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/param_spec.h"
#include "trainer/optim/config.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/param_rules.h"
#include "trainer/units/owned_range.h"

namespace tycho {

/// A stretch of one owned range whose parameters have the same rule, or one parameter: flat views, made once.
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
/// Muon and for weights that are rounded stochastically; these two must be whole, or Error (kFailure) is
/// thrown.
Segments make_segments(const OptimizerConfig& config, const std::vector<OwnedRange>& ranges,
                       const ParamRules& rules, uint64_t seed);

/// The owned gradients that are trained by, as flat views: what the global norm is of. Copies of what an
/// earlier rank along tp has are left out. One that is empty when this rank owns none.
std::vector<Tensor> trained_grads(const std::vector<OwnedRange>& ranges, const ParamRules& rules);

}  // namespace tycho
