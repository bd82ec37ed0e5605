// How many examples fit into the rows of a batch: LLM Foundry's packing_ratio = "auto".
#pragma once
#include <cstdint>
#include <span>

namespace tycho {

/// What is packed together: the rows of a batch, or an equal part of them.
struct PackingGroup {
  int64_t num_rows = 1;
  int64_t row_tokens = 1;
};

/// int(ratio x rows), LLM Foundry's number of examples that a batch is packed from.
int64_t examples_per_batch(double ratio, int64_t num_rows);

/// The ratio that LLM Foundry's auto_packing_ratio finds (0.22.0) for a group whose first examples have these
/// lengths: of up to 20 ratios from 1 to row_tokens / 100, the last before the first with which examples wait
/// after all are packed. It looks at 100 batches of the largest ratio at most. 1 for rows of at most 100
/// tokens.
double find_packing_ratio(std::span<const int32_t> lengths, const PackingGroup& group);

}  // namespace tycho
