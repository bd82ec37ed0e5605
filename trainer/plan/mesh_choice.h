// Which mesh is fastest: all that are legal for a number of ranks, those that fit in order of their estimated
// speed. Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/train_config.h"
#include "trainer/machine/config.h"
#include "trainer/parallel/config.h"
#include "trainer/parallel/mesh_shape.h"
#include "trainer/plan/plan.h"
#include "trainer/plan/step_time.h"

namespace tycho {

struct MeshChoice {
  MeshShape mesh;
  StepTime time;
  std::string waits;         // as of waits_text
  int64_t device_bytes = 0;  // of a rank
  int64_t micro_batch = 0;   // sequences, where the recipe leaves it to Tycho
  bool fits = false;
};

/// Those that fit by falling tokens/s, then those that do not by growing memory; of equals the one with more
/// copies first. All other settings are as given, but for micro_batch = "auto", which is the largest that
/// fits each mesh. For a config that check_config passes, with machine.name; `devices.num_ranks` is given.
/// Throws Error (kTopology) when not one mesh is legal, with what is wrong with plain data parallel.
std::vector<MeshChoice> rank_meshes(const TrainConfig& config, const PlanDevices& devices);

/// The three best with reasons, and the smallest that do not fit. Lines of at most 80 columns.
std::string choices_text(const std::vector<MeshChoice>& choices, const Machine& machine);

/// The first of rank_meshes. Throws Error (kTopology) with the table when none fits.
MeshChoice best_mesh(const std::vector<MeshChoice>& choices, const Machine& machine);

/// `parallel` with the sizes of a mesh in the place of "auto".
ParallelConfig with_sizes(ParallelConfig parallel, const MeshShape& mesh);

}  // namespace tycho
