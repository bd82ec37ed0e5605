// recompute.mode = "auto" and micro_batch = "auto": the fastest that fit into memory. Torch-free.
#pragma once
#include <cstdint>
#include <string>

#include "trainer/families/recompute_config.h"
#include "trainer/layout/model_layout.h"
#include "trainer/plan/plan.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Return true if the recipe leaves the key to the planner; leaves_memory, if it leaves one of both.
bool leaves_recompute(const TrainConfig& config);
bool leaves_micro_batch(const TrainConfig& config);
bool leaves_memory(const TrainConfig& config);

struct MemoryChoice {
  Recompute recompute = Recompute::kNone;
  int64_t sequences = 0;     // of a micro-batch; divides of_sequences where the planner chose it
  int64_t of_sequences = 0;  // a rank's sequences of a global batch
  int64_t device_bytes = 0;  // memory that a rank then takes on its device
  int64_t room_bytes = 0;    // memory that it has
  double step_s = 0;         // estimated
  double order_s = 0;        // part of it (StepTime)
  bool fits = false;         // false: not even one sequence with full recomputation fits
};

/// Returns, of the recomputations and micro-batches that the recipe leaves open, the fastest whose plan fits
/// into the memory of the recipe's machine: for each recomputation, the largest divisor of a rank's share of
/// the global batch, or a smaller one with which attention fills the GPU better. Keeps all other settings.
/// Requires that check_config passes with devices.num_ranks, and machine.name.
MemoryChoice choose_memory(const TrainConfig& config, const PlanDevices& devices);
/// Same as above, without computing `layout`, which must be that of the config's model.
MemoryChoice choose_memory(const TrainConfig& config, const ModelLayout& layout, const PlanDevices& devices);

/// Returns a line for each key that the recipe left open: "micro_batch = "auto": 8 of the 16 sequences of a
/// rank, with which it takes 5.1 GB of 84.8 GB".
std::string choice_text(const TrainConfig& config, const MemoryChoice& choice);

/// Returns the config with the choice in place of "auto".
TrainConfig with_choice(TrainConfig config, const MemoryChoice& choice);

}  // namespace tycho
