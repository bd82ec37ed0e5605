// The rules between parallel.cp and what its ranks share: the tokens of each sequence.
#pragma once
#include "trainer/base/config_problems.h"
#include "trainer/recipe/parallel.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Returns the number that the length of a row must be a multiple of: ranks along cp, and with sequence
/// parallel those along tp, share every row.
int64_t row_parts(const ParallelConfig& parallel);

/// Reports sequences that the ranks cannot share evenly, with the nearest lengths that they can, and features
/// that need whole sequences.
void check_context_parallel(const TrainConfig& config, ConfigProblems& problems);

}  // namespace tycho
