// A parameter, or its gradient, from the parts that ranks along tp have, for a look at it.
#pragma once
#include "trainer/kernels/tensor.h"
#include "trainer/models/parallel_region.h"
#include "trainer/parallel/unit_store.h"

namespace tycho {

/// Parameter i of a unit on every rank, and its gradient after UnitStore::finish, undefined when it is
/// frozen: the store's own where no rank shares matrices, else a copy. Collective on the region's ranks and
/// the store's.
Tensor whole_param(UnitStore& units, const ParallelRegion& region, size_t unit, size_t i);
Tensor whole_grad(UnitStore& units, const ParallelRegion& region, size_t unit, size_t i);

}  // namespace tycho
