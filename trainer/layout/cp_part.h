// What of each sequence the ranks along the mesh's cp axis have: two stretches of neighbouring tokens, an
// early and a late one, so that causal attention gives all ranks the same work. Torch-free.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/families/recompute_config.h"
#include "trainer/layout/cp_shape.h"
#include "trainer/layout/decoder_spec.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/param_spec.h"
#include "trainer/layout/stages.h"

namespace tycho {

/// Of the 2 cp equal parts of a sequence of `seq` tokens, a multiple of 2 cp: part `rank` and part
/// 2 cp - 1 - rank. For one rank the whole sequence, and none of it.
struct CpStretch {
  int64_t first = 0, count = 0;
};
std::array<CpStretch, 2> cp_stretches(int64_t seq, const CpShape& cp);

/// Calls run(i, j, n) for tokens [first, first + count) of those that a rank has of a batch: the n from its
/// i-th on are the batch's from the j-th on, all of one sequence unless there is one rank.
void for_cp_runs(int64_t seq, const CpShape& cp, int64_t first, int64_t count,
                 const std::function<void(int64_t i, int64_t j, int64_t n)>& run);

/// Bytes that a rank receives from the others for one micro-batch of `shape`, whole sequences: keys and
/// values, gathered or from its neighbour, and their gradients, summed or in fp32 on their way round. `spec`:
/// of a rank along tp; `units`: of all stages, with what is frozen; `part`: what its own stage computes.
int64_t cp_traffic(const DecoderSpec& spec, const std::vector<UnitSpec>& units, BatchShape shape,
                   const RecomputeConfig& recompute, int64_t compute_bytes, const CpShape& cp,
                   const StagePart& part);

}  // namespace tycho
