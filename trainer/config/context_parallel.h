// The rules between parallel.cp and what its ranks share: the tokens of each sequence.
#pragma once
#include "trainer/base/config_problems.h"
#include "trainer/config/train_config.h"
#include "trainer/parallel/config.h"

namespace tycho {

/// Ranks along cp, and with sequence parallel those along tp, share every row: its length is a multiple of
/// this.
int64_t row_parts(const ParallelConfig& parallel);

/// Reports sequences that so many ranks cannot share evenly, with the nearest lengths that they can, and what
/// needs whole sequences.
void check_context_parallel(const TrainConfig& config, ConfigProblems& problems);

}  // namespace tycho
