// Common to all optimizers: state buffers, and ranges of units that are updated alike.
#pragma once
#include <vector>

#include "trainer/kernels/optimizer/optimized_weights.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/param_spec.h"
#include "trainer/layout/unit_layout.h"
#include "trainer/optim/config.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/param_rules.h"
#include "trainer/parallel/communicator.h"
#include "trainer/units/owned_range.h"

namespace tycho {

/// A matrix of the model that is updated as a whole, of which a rank may own a part.
struct WholeMatrix {
  size_t unit = 0;
  Shape shape;
};

/// A stretch of one owned range whose parameters have the same rule, or one parameter: flat views, made once.
struct Segment {
  ParamRule rule;
  Extent extent;  // of the parameter, when it is one; counted from the first element here
  WeightTensors weights;
  Tensor grads;
  std::vector<Tensor> state;  // in the order of state_names
  int matrix = -1;            // in Segments::matrices, when it is updated as a whole
};

struct Segments {
  std::vector<StateBuffer> state;     // by name, then by unit
  std::vector<Segment> list;          // frozen parameters are left out
  std::vector<WholeMatrix> matrices;  // of all units, the same on all ranks
  at::Device device = at::kCPU;
  Communicator* owners = nullptr;  // that have the parts of each; null: this rank has all of it
};

/// Takes zeroed memory for all state. Neighbours with the same rule share a segment, but for matrices of
/// Muon and for weights that are rounded stochastically. The former must be whole where there are no
/// `owners`, or Error (kFailure) is thrown.
Segments make_segments(const OptimizerConfig& config, const std::vector<OwnedRange>& ranges,
                       const ParamRules& rules, uint64_t seed, Communicator* owners);

/// The owned gradients that are trained by, as flat views: what the global norm is of. Copies of what an
/// earlier rank along tp has are left out. One that is empty when this rank owns none.
std::vector<Tensor> trained_grads(const std::vector<OwnedRange>& ranges, const ParamRules& rules);

}  // namespace tycho
