// What a run will take, from its config alone: parameters, memory by item, FLOPs, steps, tokens, disk.
// Torch-free.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/config/step_tokens.h"
#include "trainer/config/train_config.h"
#include "trainer/layout/model_layout.h"
#include "trainer/parallel/config.h"
#include "trainer/plan/state_memory.h"
#include "trainer/plan/step_time.h"

namespace tycho {

/// What a run is planned for.
struct PlanDevices {
  int64_t num_ranks = 0;          // check_config passes with them; 0: the fewest that the mesh can have
  std::string gpu;                // its name or a part that tells it: "H200"; "" for no estimate of time
  double mfu = 0.4;               // share of the GPU's peak that training reaches
  int64_t ranks_per_machine = 0;  // 0: the GPUs of a node of the recipe's machine, or all ranks
};

/// One way for attention to get the keys and values of other ranks along cp.
struct CpForm {
  CpAttention attention = CpAttention::kGather;
  int64_t received_bytes = 0;     // by a rank, in a step
  int64_t buffer_bytes = 0;       // that it keeps for them
  double wait_s = 0, step_s = 0;  // for them, of a step; 0 without a machine
  bool fits = true;               // into the machine's memory
};

struct Plan {
  int64_t num_params = 0, num_matmul_params = 0;
  int64_t steps = 0;  // 0 when it is a matter of epochs and the data set is not there
  int64_t tokens = 0, tokens_per_step = 0, micro_batches_per_step = 0;
  int64_t num_samples = 0;        // of the data set; 0 when it is not there
  std::string data_problem;       // why it is not there
  std::vector<std::string> rows;  // of conversations: how long they are, and how much of the rows is padding
  std::shared_ptr<const StepTokens> step_tokens;  // the config's, where padding does not count
  double data_epochs = 0;                         // 0 when unknown
  double flops_per_token_full = 0, flops_per_token_causal = 0;
  double total_flops = 0;  // all tokens, attention in full
  int64_t num_ranks = 1;
  double seconds = 0;            // of the whole run, without evaluation and checkpoints; 0 when unknown
  std::string seconds_note;      // "at 40 % of the peak of 8 H200 (989 TFLOP/s in bf16 each)"
  int64_t stage = 0;             // along pp, of the rank that takes most
  std::vector<ByteItem> memory;  // of that rank: what the engine takes, without LibTorch itself
  int64_t memory_bytes = 0;      // of the device that trains
  int64_t training_bytes = 0;    // the same without what a save takes
  int64_t host_bytes = 0;        // of the host when a GPU trains
  std::string fit_note;  // whether that fits the GPU, and what would; "" where its memory is not known
  std::string mesh;      // "dp_replicate 2 x dp_shard 4"; "" for one rank
  std::string drawing;   // of the mesh, in lines; "" for one rank
  std::string machine;   // what `machine` of the recipe stands for; "" without one
  std::optional<StepTime> estimate;  // on that machine
  std::string speed;                 // of the estimate, for people
  std::string waits;                 // of the estimate, by axis
  std::vector<ByteItem> traffic;     // what a rank receives from others in a step, by axis
  std::vector<CpForm> cp_forms;      // both, where ranks share sequences
  int64_t checkpoint_bytes = 0;      // one checkpoint
  std::string checkpoint_note;       // "weights, exp_avg, exp_avg_sq in fp32"
  int64_t disk_bytes = 0;            // all that are kept, and one in flight
};

/// Problems of a valid config that depend on parameter names: groups that match none.
std::vector<ConfigProblem> check_parameters(const TrainConfig& config);
/// What is wrong with files that the config names: a tokenizer that is a folder.
std::vector<ConfigProblem> check_files(const TrainConfig& config);
/// Files that a run will need and that do not exist now. They may be created before it starts.
std::vector<ConfigProblem> missing_files(const TrainConfig& config);
/// Orders of training data on this machine that take much memory and time to begin with.
std::vector<ConfigProblem> large_orders(const TrainConfig& config);

/// For a config that check_config passes, on a GPU when one is named and the device is `auto`. Looks at the
/// data set's index when it is there. Throws Error (kUsage) for a GPU whose peak is not known.
Plan make_plan(const TrainConfig& config, const PlanDevices& devices = {});
/// What of a plan depends on the mesh, and the estimate: needs no data set. `devices.num_ranks` is given.
Plan plan_mesh(const TrainConfig& config, const PlanDevices& devices);
/// The same for who asks often: `layout` is that of the config's model.
Plan plan_mesh(const TrainConfig& config, const ModelLayout& layout, const PlanDevices& devices);
/// Only the memory of a plan: needs no data set.
Plan plan_memory(const TrainConfig& config, int64_t num_ranks);
/// Its table: one line for each item, and the total.
std::string memory_table(const Plan& plan);
/// The table that `tycho plan` prints: lines of at most 80 columns, but for data_problem at its end.
std::string plan_text(const Plan& plan, const TrainConfig& config);

}  // namespace tycho
