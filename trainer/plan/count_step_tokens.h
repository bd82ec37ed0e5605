// Counts the tokens that a run of conversations will train on, step by step.
#pragma once
#include <memory>

#include "trainer/data/rows/opened_data.h"
#include "trainer/recipe/step_tokens.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Returns the tokens without padding of the steps until max_duration, in the order of the epochs, if the
/// config's train_data counts tokens this way (ChatCompat::kComposer); else nullptr. Tokenises the data.
/// Throws like open_chat_dataset and batch_packing.
std::shared_ptr<const StepTokens> count_step_tokens(const TrainConfig& config, const OpenedData& opened);

}  // namespace tycho
