// Division of the work among the ranks of a run.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "trainer/base/fields.h"
#include "trainer/base/precision.h"
#include "trainer/pipeline/schedule.h"
#include "trainer/recipe/mesh_shape.h"

namespace tycho {

/// Source of the sizes of the mesh.
enum class MeshSizes { kGiven, kAuto };
constexpr EnumNames<MeshSizes, 2> enum_names(MeshSizes) {
  return {{{"given", MeshSizes::kGiven}, {"auto", MeshSizes::kAuto}}};
}

/// Method by which attention gets the keys and values of other ranks along cp.
enum class CpAttention { kGather, kRing, kAuto };
constexpr EnumNames<CpAttention, 3> enum_names(CpAttention) {
  return {{{"gather", CpAttention::kGather}, {"ring", CpAttention::kRing}, {"auto", CpAttention::kAuto}}};
}

/// Order in which gradients are summed over micro-batches and ranks.
enum class GradientOrder { kRanks, kCanonical };
constexpr EnumNames<GradientOrder, 2> enum_names(GradientOrder) {
  return {{{"ranks", GradientOrder::kRanks}, {"canonical", GradientOrder::kCanonical}}};
}

struct ParallelConfig {
  MeshSizes mesh = MeshSizes::kGiven;
  int64_t pp = 1;
  int64_t dp_replicate = kWhatIsLeft;
  int64_t dp_shard = 1;
  int64_t cp = 1;
  CpAttention cp_attention = CpAttention::kGather;
  int64_t tp = 1;
  bool reshard_after_forward = true;
  bool keep_gradients = false;
  Precision reduce_dtype = Precision::kFp32;
  GradientOrder reduce = GradientOrder::kRanks;
  bool fast_sums = false;
  bool register_buffers = false;
  bool sequence_parallel = true;
  PipelineSchedule pp_schedule = PipelineSchedule::k1f1b;
  int64_t pp_chunks = 1;
  std::vector<int64_t> pp_layers;

  static constexpr int64_t kWhatIsLeft = -1;
  /// Key that a text for the whole group sets: r.parallel = "auto".
  static constexpr const char* kShorthand = "mesh";

  template <class Visitor>
  void fields(Visitor& v) {
    v("mesh", mesh,
      "given: the sizes below. auto: those that the planner finds fastest for the number of ranks and "
      "`machine`, among those that fit; a run prints them and keeps them in its recipe.");
    v("pp", pp,
      "Number of pipeline stages, each on ranks of its own: some of the blocks, the first stage with the "
      "embedding, the last one with the head (pipeline parallel).",
      positive);
    v("dp_replicate", dp_replicate,
      "Copies of the model, each of which trains on its own share of every global batch; -1 for all "
      "remaining ranks.",
      at_least(-1));
    v("dp_shard", dp_shard,
      "Ranks that share the parameters, gradients and optimizer state of a copy (FSDP); -1 for all remaining "
      "ranks.",
      at_least(-1));
    v("cp", cp,
      "Ranks that share the tokens of each sequence (context parallel), and the parameters with those of "
      "dp_shard. seq_len must be a multiple of 2 cp.",
      positive);
    v("cp_attention", cp_attention,
      "With cp: how attention gets the keys and values of other ranks. gather: all at once, in every block. "
      "ring: ranks pass them on to their neighbours while they compute with those at hand (ring attention). "
      "auto: what the planner finds faster on `machine`; a run keeps the choice in its recipe.");
    v("tp", tp,
      "Ranks that share each matrix: each has a part of the heads, of the hidden features and of the "
      "vocabulary (tensor parallel).",
      positive);
    v("reshard_after_forward", reshard_after_forward,
      "With dp_shard: drop gathered parameters after the forward pass and gather them again for the backward "
      "pass (ZeRO-3). false keeps them for the step: less traffic, more memory (ZeRO-2).");
    v("keep_gradients", keep_gradients,
      "With dp_shard: keep whole gradients until the last micro-batch of a step and sum them over ranks "
      "once: less traffic, more memory (ZeRO-1).");
    v("reduce_dtype", reduce_dtype,
      "Dtype in which ranks exchange gradients: bf16 halves the traffic of fp32, and rounds what each rank "
      "sends and what arrives. They are added in fp32 in either case.");
    v("reduce", reduce,
      "ranks: each rank sums the gradients of its micro-batches, and these sums are added in the order of "
      "ranks. canonical: a fixed tree over all micro-batches, so that 1, 2, 4, 8 ... ranks train to the same "
      "bits; takes more memory.");
    v("fast_sums", fast_sums,
      "On GPUs: let NCCL add in the NVLink switch (NVLS), which is faster and adds in any order: a repeated "
      "step no longer has the same bits. Has not run on a GPU yet.");
    v("register_buffers", register_buffers,
      "On GPUs: register the memory of parameters and gradients with NCCL, which then moves them without a "
      "copy of its own where the network or the switch can. Has not run on a GPU yet.");
    v("sequence_parallel", sequence_parallel,
      "With tp: share norms, dropout and the residual stream token by token, too: less memory, a little more "
      "traffic. seq_len must be a multiple of tp then.");
    v("pp_schedule", pp_schedule,
      "With pp: the order in which a stage computes its micro-batches. 1f1b keeps activations of few of "
      "them, gpipe those of all; interleaved waits less, with pp_chunks of the model on every stage.");
    v("pp_chunks", pp_chunks, "With pp_schedule = \"interleaved\": parts of the model on every stage.",
      positive);
    v("pp_layers", pp_layers,
      "With pp: the number of blocks of each part of the model, in its order; with pp_chunks = 2 the second "
      "half is that of the second parts. Empty: parts with about the same amount of work.",
      positive);
  }
};

class ConfigProblems;

/// Reports sizes and schedules that are impossible and, when the number of ranks is known, a mesh with
/// another number of ranks, with the nearest meshes that fit.
void check(const ParallelConfig& parallel, std::optional<int64_t> num_ranks, ConfigProblems& problems);

/// Returns the pipeline of a step of `num_micro_batches`.
PipelineShape pipeline_shape(const ParallelConfig& parallel, int64_t num_micro_batches);

/// Returns the number of ranks that read different data, for a config that check() passed with `num_ranks`.
int64_t data_ranks(const ParallelConfig& parallel, int64_t num_ranks);

/// Returns the number of ranks that a recipe asks for; nothing when it takes as many as there are.
std::optional<int64_t> wanted_ranks(const ParallelConfig& parallel);
/// Returns the fewest ranks that the recipe's mesh can have.
int64_t fewest_ranks(const ParallelConfig& parallel);

/// Returns the mesh of a config that check() passed with `num_ranks`.
MeshShape mesh_shape(const ParallelConfig& parallel, int64_t num_ranks);

}  // namespace tycho
