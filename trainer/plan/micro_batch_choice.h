// micro_batch = "auto": the most sequences that a rank can compute with at once. Torch-free.
#pragma once
#include <cstdint>
#include <string>

#include "trainer/layout/model_layout.h"
#include "trainer/plan/plan.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

struct MicroBatchChoice {
  int64_t sequences = 0;     // divides of_sequences
  int64_t of_sequences = 0;  // a rank's sequences of a global batch
  int64_t device_bytes = 0;  // memory that a rank then takes on its device
  int64_t room_bytes = 0;    // memory that it has
  bool fits = false;         // false: not even one sequence fits
};

/// Returns the largest divisor of a rank's share of the global batch whose plan fits into the memory of the
/// recipe's machine. Keeps all other settings. Requires that check_config passes with devices.num_ranks, and
/// machine.name.
MicroBatchChoice largest_micro_batch(const TrainConfig& config, const PlanDevices& devices);
/// Same as above, without computing `layout`, which must be that of the config's model.
MicroBatchChoice largest_micro_batch(const TrainConfig& config, const ModelLayout& layout,
                                     const PlanDevices& devices);

/// Returns "micro_batch = "auto": 8 of the 16 sequences of a rank, which take 5.1 GB of 84.8 GB" and a line
/// end.
std::string choice_text(const MicroBatchChoice& choice);

/// Returns the config with this number of sequences in place of "auto".
TrainConfig with_micro_batch(TrainConfig config, int64_t sequences);

}  // namespace tycho
