// Activation slots for keys and values of other ranks. Torch-free.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/families/decoder_spec.h"
#include "trainer/layout/cp_shape.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/param_spec.h"

namespace tycho {

/// Returns slots for decoder_activations, equal for all blocks. `s`: of a rank along tp; `whole`: the batch
/// of all ranks along cp.
std::vector<SlotSpec> cp_slots(const DecoderSpec& s, BatchShape whole, int64_t compute_bytes,
                               const CpShape& cp);

}  // namespace tycho
