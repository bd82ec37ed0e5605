// Bytes that a rank receives from the others along tp. Torch-free: `tycho plan` prints them, and a test
// compares them with the engine's traffic.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/families/decoder_spec.h"
#include "trainer/families/recompute_config.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/param_spec.h"
#include "trainer/layout/stages.h"
#include "trainer/layout/tp_parts.h"

namespace tycho {

/// Bytes of one micro-batch. A gather or a scatter receives the parts of the other ranks; a sum does both.
struct TpTraffic {
  int64_t activations = 0;  // tensors that enter and leave regions, their gradients, statistics of norms
  int64_t losses = 0;       // two numbers for each token and rank
};
/// `spec`: the model's; `units`: a rank's, with frozen parameters marked, of all stages; `part`: blocks that
/// its own stage computes.
TpTraffic tp_traffic(const DecoderSpec& spec, const std::vector<UnitSpec>& units, BatchShape shape,
                     const RecomputeConfig& recompute, int64_t compute_bytes, const TpShape& tp,
                     const StagePart& part);

/// Returns the bytes of gradients (fp32) that ranks have parts of, once for all units.
int64_t tp_gradient_bytes(const std::vector<UnitSpec>& units, const TpShape& tp);

}  // namespace tycho
