// Which mesh is fastest: all that are legal for a number of ranks, those that fit in order of their estimated
// speed. Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/plan/plan.h"
#include "trainer/plan/step_time.h"
#include "trainer/recipe/machine.h"
#include "trainer/recipe/mesh_shape.h"
#include "trainer/recipe/parallel.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

struct MeshChoice {
  MeshShape mesh;
  StepTime time;
  std::string waits;         // text of waits_text
  int64_t device_bytes = 0;  // of a rank
  std::string chosen;        // "recompute none, micro_batch 8sp": the keys that the recipe leaves open
  bool fits = false;
};

/// Returns the meshes: those that fit by falling tokens/s, followed by those that do not by growing memory;
/// of equals the one with more copies first. Keeps all other settings, and chooses
/// recompute.mode and micro_batch for each mesh where the recipe leaves them open. Requires that check_config
/// passes, machine.name, and devices.num_ranks. Throws Error (kTopology) when no mesh is valid, with what is
/// wrong with plain data parallel.
std::vector<MeshChoice> rank_meshes(const TrainConfig& config, const PlanDevices& devices);

/// Returns the three best with reasons, and the smallest that do not fit, in lines of at most 80 columns.
std::string choices_text(const std::vector<MeshChoice>& choices, const Machine& machine);

/// Returns the first of rank_meshes. Throws Error (kTopology) with the table when none fits.
MeshChoice best_mesh(const std::vector<MeshChoice>& choices, const Machine& machine);

/// Returns `parallel` with the sizes of a mesh in place of "auto".
ParallelConfig with_sizes(ParallelConfig parallel, const MeshShape& mesh);

}  // namespace tycho
