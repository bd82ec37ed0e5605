// The part of each sequence that a rank along the mesh's cp axis has: two spans of consecutive tokens, an
// early and a late one, so that causal attention gives all ranks the same work. Torch-free.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "trainer/families/decoder_spec.h"
#include "trainer/families/recompute_config.h"
#include "trainer/layout/cp_shape.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/param_spec.h"
#include "trainer/layout/stages.h"

namespace tycho {

/// Span of consecutive tokens. cp_spans returns two of the 2 cp equal parts of a sequence of `seq`
/// tokens, a multiple of 2 cp: part `rank` and part 2 cp - 1 - rank. For one rank they are the whole
/// sequence, and an empty span.
struct CpSpan {
  int64_t first = 0, count = 0;
};
std::array<CpSpan, 2> cp_spans(int64_t seq, const CpShape& cp);

/// Calls run(i, j, n) for tokens [first, first + count) of the tokens that a rank has of a batch: its n
/// tokens starting at i are the batch's n tokens starting at j, all of one sequence unless there is one rank.
void for_cp_runs(int64_t seq, const CpShape& cp, int64_t first, int64_t count,
                 const std::function<void(int64_t i, int64_t j, int64_t n)>& run);

/// Returns the bytes that a rank receives from the others for one micro-batch of `shape`, whole sequences:
/// keys and values, gathered or from its neighbour, and their gradients, summed or passed around the ring in
/// fp32. `spec`: of a rank along tp; `units`: of all stages, with frozen parameters marked; `part`: blocks
/// that its own stage computes.
int64_t cp_traffic(const DecoderSpec& spec, const std::vector<UnitSpec>& units, BatchShape shape,
                   const RecomputeConfig& recompute, int64_t compute_bytes, const CpShape& cp,
                   const StagePart& part);

}  // namespace tycho
