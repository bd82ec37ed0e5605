// The rules between rows of conversations and the rest of a run.
#pragma once
#include "trainer/base/config_problems.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Reports rows padded on the left for a model whose positions count from there, and evaluation rows that
/// would be packed for batches of training.
void check_chat_rows(const TrainConfig& config, ConfigProblems& problems);
/// Reports packing groups that do not divide the global batch. Requires a global_batch of whole sequences.
void check_packing_groups(const TrainConfig& config, ConfigProblems& problems);

}  // namespace tycho
