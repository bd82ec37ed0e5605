// How long a step will take on machines of one kind: arithmetic at a share of their peak, and bytes over the
// links that they cross. An estimate that compares meshes. Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/plan/state_memory.h"
#include "trainer/recipe/machine.h"
#include "trainer/recipe/mesh_shape.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// The work of a rank in a step.
struct StepWork {
  MeshShape mesh;
  int64_t micro_batches = 1;
  std::vector<ByteItem> traffic;  // received from others, each item named after its axis
  int num_sms = 0;                // of the GPU; 0: the order of attention's sums costs nothing
};

/// The time that the ranks along one axis cost each other.
struct AxisTime {
  std::string axis;       // "dp_shard"
  bool crosses = false;   // from one NVLink domain to another
  double transfer_s = 0;  // for a step's bytes, and the minimum time of each collective
  double wait_s = 0;      // the part that computing does not hide
};

struct StepTime {
  double compute_s = 0;  // products and attention, including recomputation
  double order_s = 0;    // part of it: the order of attention's sums (attention_time.h); negative: a gain
  bool flash_3 = false;  // order_s is FlashAttention-3's
  double fp8_s = 0;      // part of it: what fp8 adds (fp8_time.h); negative: a gain
  double bubble_s = 0;   // idle time of pipeline stages
  std::vector<AxisTime> axes;
  double step_s = 0;
  double tokens_per_s = 0;  // all ranks together
  double mfu = 0;           // counts full attention, like published tables
  double waits_s() const;   // total wait for other ranks
};

/// Estimates the step time of a config that check_config passes with the ranks of the mesh. Excludes
/// optimizer, data, evaluations and checkpoints.
///
/// compute = FLOPs / (peak x efficiency x width / (width + half_width x c) x tokens / (tokens + half_tokens x
/// c))
///   with c = sqrt(tp) and the tokens of a micro-batch: tp makes products smaller; on GPUs plus
///   attention_order_s and fp8_added_s
/// transfer = bytes / rate + calls x minimum time, with rate = NVLink's inside a domain, else
///   min(NVLink, network x ranks of the group in a domain): NCCL's rings use all network cards of a node.
/// A ring along cp (parallel.cp_attention) is a hop to the neighbour for each other rank, at the rate of one
/// GPU's link; a hop is hidden by attention to one part of the keys. Sums of the parts take the time that
/// GPUs need to read and write them.
/// dp_shard is hidden by computing, except for the first gather and the last sum, and slows it by a tenth of
/// the time hidden; dp_replicate is hidden by the backward pass of the last micro-batch; tp, cp and pp are
/// not hidden.
StepTime step_time(const TrainConfig& config, const StepWork& work, const Machine& machine);

/// Returns the number of ranks in a domain: those that NVLink joins, or all ranks of a CPU machine.
int64_t ranks_per_domain(const Machine& machine);

}  // namespace tycho
