// The global norm of the gradients, and clipping by it.
#pragma once
#include "trainer/optim/config.h"
#include "trainer/units/flat_unit.h"

namespace tycho {

/// Both on the device, fp32, one element.
struct GradNorm {
  Tensor norm_1;   // before clipping
  Tensor scale_1;  // what the optimizer multiplies gradients by
};

/// L2 norm over all gradients of `units` and the factor min(1, max / (norm + 1e-6)).       (Pascanu et al.
/// 2013)
GradNorm clip_gradients(const ClipConfig& config, std::vector<FlatUnit>& units);

}  // namespace tycho
