// What a run will take, from its config alone: parameters, memory by item, FLOPs, steps, tokens, disk.
// Torch-free.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/base/gpu_shape.h"
#include "trainer/layout/model_layout.h"
#include "trainer/plan/state_memory.h"
#include "trainer/plan/step_time.h"
#include "trainer/recipe/parallel.h"
#include "trainer/recipe/step_tokens.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// The devices that a run is planned for.
struct PlanDevices {
  int64_t num_ranks = 0;       // must pass check_config; 0: the fewest that the mesh can have
  std::string gpu;             // its name or a distinctive part: "H200"; "" for no estimate of time
  double mfu = 0.4;            // share of the GPU's peak that training reaches
  int64_t ranks_per_node = 0;  // 0: the GPUs of a node of the recipe's machine, or all ranks
  GpuShape shape;  // of the GPU at hand; what it lacks is looked up by `gpu` or the recipe's machine
};

/// A way for attention to get the keys and values of other ranks along cp.
struct CpForm {
  CpAttention attention = CpAttention::kGather;
  int64_t received_bytes = 0;     // received by a rank in a step
  int64_t buffer_bytes = 0;       // kept by a rank for them
  double wait_s = 0, step_s = 0;  // per step; 0 without a machine
  bool fits = true;               // in the machine's memory
};

struct Plan {
  int64_t num_params = 0, num_matmul_params = 0;
  int64_t steps = 0;  // 0 when it depends on epochs of a missing data set
  int64_t tokens = 0, tokens_per_step = 0, micro_batches_per_step = 0;
  int64_t num_samples = 0;                        // of the data set; 0 when it is missing
  std::string data_problem;                       // why it is missing
  std::vector<std::string> rows;                  // of conversations: lengths, and the share of padding
  std::shared_ptr<const StepTokens> step_tokens;  // the config's, when padding does not count
  double data_epochs = 0;                         // 0 when unknown
  double flops_per_token_full = 0, flops_per_token_causal = 0;
  double total_flops = 0;  // all tokens, attention in full
  int64_t num_ranks = 1;
  double seconds = 0;                // of the whole run, without evaluations and checkpoints; 0 when unknown
  std::string seconds_note;          // "at 40 % of the peak of 8 H200 (989 TFLOP/s in bf16 each)"
  int64_t stage = 0;                 // along pp, of the rank that takes most
  std::vector<ByteItem> memory;      // of that rank: memory of the engine, without LibTorch itself
  int64_t memory_bytes = 0;          // of the training device
  int64_t training_bytes = 0;        // memory_bytes without a save
  int64_t estimated_bytes = 0;       // of training_bytes: what libraries take, roughly
  int64_t host_bytes = 0;            // of the host when a GPU trains
  std::string fit_note;              // whether it fits the GPU, and what would; "" when its memory is unknown
  std::string mesh;                  // "dp_replicate 2 x dp_shard 4"; "" for one rank
  std::string drawing;               // of the mesh, in lines; "" for one rank
  std::string machine;               // the recipe's `machine`; "" without one
  std::optional<StepTime> estimate;  // on that machine
  std::string speed;                 // of the estimate, for display
  std::string waits;                 // of the estimate, by axis
  std::vector<ByteItem> traffic;     // bytes that a rank receives in a step, by axis
  std::vector<CpForm> cp_forms;      // both, when ranks share sequences
  int64_t checkpoint_bytes = 0;      // one checkpoint
  std::string checkpoint_note;       // "weights, exp_avg, exp_avg_sq in fp32"
  int64_t disk_bytes = 0;            // all kept checkpoints, and one in flight
};

/// Returns problems of a valid config that depend on parameter names: groups that match none.
std::vector<ConfigProblem> check_parameters(const TrainConfig& config);
/// Returns problems of files that the config names, such as a tokenizer that is a folder.
std::vector<ConfigProblem> check_files(const TrainConfig& config);
/// Returns files that a run will need and that do not exist now. They may be created before it starts.
std::vector<ConfigProblem> missing_files(const TrainConfig& config);
/// Returns data sets of samples on this machine that do not fit the recipe: another length or vocabulary.
/// Leaves out those that do not exist.
std::vector<ConfigProblem> unfit_samples(const TrainConfig& config);
/// Returns orders of training data on this machine that take much memory and time to build.
std::vector<ConfigProblem> large_orders(const TrainConfig& config);

/// Makes a plan for a config that check_config passes; on a GPU when one is named and the device is `auto`.
/// Reads the data set's index if it exists. Throws Error (kUsage) for a GPU whose peak is unknown.
Plan make_plan(const TrainConfig& config, const PlanDevices& devices = {});
/// Makes the part of a plan that depends on the mesh, and the estimate, without a data set. Requires
/// devices.num_ranks.
Plan plan_mesh(const TrainConfig& config, const PlanDevices& devices);
/// Same as above, without computing `layout`, which must be that of the config's model.
Plan plan_mesh(const TrainConfig& config, const ModelLayout& layout, const PlanDevices& devices);
/// Makes only the memory part of a plan, without a data set. Uses num_ranks and the GPU of `devices`.
Plan plan_memory(const TrainConfig& config, const PlanDevices& devices);
/// Returns the memory as a table: one line for each item, and the total.
std::string memory_table(const Plan& plan);
/// Returns the table that `tycho plan` prints, in lines of at most 80 columns except for data_problem at its
/// end.
std::string plan_text(const Plan& plan, const TrainConfig& config);

}  // namespace tycho
