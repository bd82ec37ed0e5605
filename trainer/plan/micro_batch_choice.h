// micro_batch = "auto": the most sequences that a rank can compute with at once. Torch-free.
#pragma once
#include <cstdint>
#include <string>

#include "trainer/config/train_config.h"
#include "trainer/layout/model_layout.h"
#include "trainer/plan/plan.h"

namespace tycho {

struct MicroBatchChoice {
  int64_t sequences = 0;     // divides those that a rank has of a global batch
  int64_t of_sequences = 0;  // these
  int64_t device_bytes = 0;  // what a rank takes of its device then
  int64_t room_bytes = 0;    // what it has
  bool fits = false;         // false: not even one sequence does
};

/// The largest divisor of a rank's share of the global batch with which the plan's memory is at most that of
/// the recipe's machine. All other settings are as given. For a config that check_config passes with
/// `devices.num_ranks`, and with machine.name.
MicroBatchChoice largest_micro_batch(const TrainConfig& config, const PlanDevices& devices);
/// The same for who asks often: `layout` is that of the config's model.
MicroBatchChoice largest_micro_batch(const TrainConfig& config, const ModelLayout& layout,
                                     const PlanDevices& devices);

/// "micro_batch = "auto": 8 of the 16 sequences of a rank, which take 5.1 GB of 84.8 GB". Ends its line.
std::string choice_text(const MicroBatchChoice& choice);

/// A config with so many sequences in the place of "auto".
TrainConfig with_micro_batch(TrainConfig config, int64_t sequences);

}  // namespace tycho
