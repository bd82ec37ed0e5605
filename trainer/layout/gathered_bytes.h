// The bytes of parameters that ranks gather in a step. Torch-free.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/layout/param_spec.h"
#include "trainer/layout/unit_shards.h"

namespace tycho {

/// Number of bytes of all parameters that are gathered on a rank in a step of `micro_batches`, padding
/// included, where a number has `bytes_each`: units that are still whole from an earlier use are not counted
/// again. Units of bf16 may be gathered as codes (coded_unit_layout).
int64_t gathered_bytes(const std::vector<UnitSpec>& units, const ShardRules& rules, int64_t micro_batches,
                       int64_t bytes_each);

}  // namespace tycho
