// Number of examples that fit into the rows of a batch: LLM Foundry's packing_ratio = "auto".
#pragma once
#include <cstdint>
#include <span>

namespace tycho {

/// Rows that are packed together: those of a batch, or an equal part of them.
struct PackingGroup {
  int64_t num_rows = 1;
  int64_t row_tokens = 1;
};

/// Returns int(ratio x rows), the number of examples from which LLM Foundry packs a batch.
int64_t examples_per_batch(double ratio, int64_t num_rows);

/// Returns the ratio that LLM Foundry's auto_packing_ratio finds (0.22.0) for a group whose first examples
/// have these lengths. Of up to 20 ratios from 1 to row_tokens / 100, this is the last one before the first
/// with which examples still wait after all are packed. At most 100 batches of the largest ratio are
/// considered. Returns 1 for rows of at most 100 tokens.
double find_packing_ratio(std::span<const int32_t> lengths, const PackingGroup& group);

}  // namespace tycho
