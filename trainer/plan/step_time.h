// How long a step will take on machines of one kind: arithmetic at a share of their peak, and bytes over the
// links that they cross. An estimate that compares meshes. Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/config/train_config.h"
#include "trainer/machine/config.h"
#include "trainer/parallel/mesh_shape.h"
#include "trainer/plan/state_memory.h"

namespace tycho {

/// What a rank does in a step.
struct StepWork {
  MeshShape mesh;
  int64_t micro_batches = 1;
  std::vector<ByteItem> traffic;  // received from others, each item named after its axis
};

/// What the ranks along one axis cost each other.
struct AxisTime {
  std::string axis;       // "dp_shard"
  bool crosses = false;   // from one NVLink domain to another
  double transfer_s = 0;  // of a step's bytes, and the least that each collective takes
  double wait_s = 0;      // the part of it that computing does not hide
};

struct StepTime {
  double compute_s = 0;  // products and attention, and what is computed again
  double bubble_s = 0;   // pipeline stages without work
  std::vector<AxisTime> axes;
  double step_s = 0;
  double tokens_per_s = 0;  // of all ranks
  double mfu = 0;           // attention in full, as in published tables
  double waits_s() const;   // for other ranks
};

/// Of a config that check_config passes with the ranks of the mesh. Not counted: optimizer, data, evaluation,
/// checkpoints.
///
/// compute = FLOPs / (peak x efficiency x width / (width + half_width x c) x tokens / (tokens + half_tokens x
/// c))
///   with c = sqrt(tp) and the tokens of a micro-batch: tp makes products smaller
/// transfer = bytes / rate + calls x least time, with rate = NVLink's inside a domain, else
///   min(NVLink, network x ranks of the group in a domain): NCCL's rings use all network cards of a node.
/// A ring along cp (parallel.cp_attention) is a hop to the neighbour for each other rank, at the rate of one
/// GPU's link; a hop hides behind attention to one part of the keys. Sums of the parts take what GPUs need to
/// read and write them.
/// dp_shard hides behind computing but for the first gather and the last sum, and slows it by a tenth of the
/// time hidden; dp_replicate hides behind the backward pass of the last micro-batch; tp, cp and pp do not.
StepTime step_time(const TrainConfig& config, const StepWork& work, const Machine& machine);

/// The ranks from one link to the next: those that NVLink joins, or all ranks of a CPU machine.
int64_t ranks_per_domain(const Machine& machine);
/// Whether ranks that differ on this axis alone are on different machines of so many ranks each.
bool axis_crosses(const MeshShape& mesh, AxisSet axes, int64_t ranks_per_machine);

}  // namespace tycho
