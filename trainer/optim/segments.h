// Common to all optimizers: state buffers, and ranges of units that are updated alike.
#pragma once
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/kernels/optimizer/optimized_weights.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/param_rules.h"
#include "trainer/layout/param_spec.h"
#include "trainer/layout/unit_layout.h"
#include "trainer/optim/optimizer.h"
#include "trainer/recipe/optim.h"
#include "trainer/sharding/owned_range.h"

namespace tycho {

/// A matrix that is updated as a whole, of which a rank may own a part.
struct WholeMatrix {
  size_t unit = 0;
  Shape shape;
  ParamRule rule;
};

/// A contiguous part of one owned range whose parameters have the same rule, or one parameter, as flat views
/// made once.
struct Segment {
  ParamRule rule;
  Extent extent;  // of the parameter, when it is a single one; counted from the first element of the segment
  WeightTensors weights;
  Tensor grads;
  int64_t num_params = 1;
  std::vector<Tensor> state;  // in the order of state_specs: flat; matrices, if of another shape; scalars,
                              // one for each parameter
  int matrix = -1;            // index in Segments::matrices, when it is updated as a whole
};

struct Segments {
  std::vector<StateBuffer> state;     // by name, then by unit
  std::vector<Segment> list;          // without frozen parameters
  std::vector<WholeMatrix> matrices;  // of all units; the same on all ranks
  at::Device device = at::kCPU;
  Communicator* owners = nullptr;  // ranks with parts of each parameter; null: this rank has all of it
};

/// Allocates all state with its first numbers. Adjacent parameters with the same rule share a segment, except
/// matrices of Muon and weights that are rounded stochastically. Throws Error (kFailure) when the former are
/// not whole and there are no `owners`.
Segments make_segments(const OptimizerConfig& config, const std::vector<OwnedRange>& ranges,
                       const ParamRules& rules, uint64_t seed, Communicator* owners);

/// Returns the owned gradients of trained parameters as flat views, over which the global norm is computed.
/// Leaves out copies of gradients that an earlier rank along tp has. Returns one empty view when this rank
/// owns none.
std::vector<Tensor> trained_grads(const std::vector<OwnedRange>& ranges, const ParamRules& rules);

}  // namespace tycho
