// A whole run as one value: the component configs together, and the rules that hold between them. Torch-free.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/bytes.h"
#include "trainer/base/duration.h"
#include "trainer/base/fields.h"
#include "trainer/base/precision.h"
#include "trainer/families/attention_config.h"
#include "trainer/families/config.h"
#include "trainer/families/recompute_config.h"
#include "trainer/recipe/callbacks.h"
#include "trainer/recipe/ckpt.h"
#include "trainer/recipe/data.h"
#include "trainer/recipe/eval.h"
#include "trainer/recipe/icl.h"
#include "trainer/recipe/init_config.h"
#include "trainer/recipe/log.h"
#include "trainer/recipe/loss.h"
#include "trainer/recipe/machine.h"
#include "trainer/recipe/optim.h"
#include "trainer/recipe/parallel.h"
#include "trainer/recipe/profiler.h"
#include "trainer/recipe/schedules.h"

namespace tycho {

class StepTokens;

enum class MasterWeights { kFp32, kNone, kStochastic };
constexpr EnumNames<MasterWeights, 3> enum_names(MasterWeights) {
  return {{{"fp32", MasterWeights::kFp32},
           {"none", MasterWeights::kNone},
           {"stochastic", MasterWeights::kStochastic}}};
}

/// The special members are defined in train_config.cpp: inline they took seconds in every source that copies
/// or destroys a config.
struct TrainConfig {
  TrainConfig();
  ~TrainConfig();
  TrainConfig(const TrainConfig&);
  TrainConfig(TrainConfig&&) noexcept;
  TrainConfig& operator=(const TrainConfig&);
  TrainConfig& operator=(TrainConfig&&) noexcept;

  std::string run_name = "run";
  std::string run_dir = "runs/{run_name}";
  std::string resume = "auto";
  int64_t seed = 17;
  DeviceKind device = DeviceKind::kAuto;
  int64_t threads = 0;
  ParallelConfig parallel;
  MachineConfig machine;
  Precision precision = Precision::kFp32;
  MasterWeights master_weights = MasterWeights::kFp32;
  int64_t seq_len = 1024;
  Duration global_batch = {8, DurationUnit::kSample};
  std::optional<DurationOrAuto> micro_batch;
  Duration max_duration = {100, DurationUnit::kBatch};
  ModelConfig model;
  InitConfig init;
  RecomputeConfig recompute;
  AttentionConfig attention;
  ProductsConfig products;
  LossConfig loss;
  OptimizerConfig optimizer;
  std::vector<ParamGroupConfig> param_groups;
  SchedulerConfig scheduler;
  ClipConfig clip;
  GuardConfig guard;
  EmaConfig ema;
  std::string tokenizer;
  DataConfig train_data;
  std::vector<DataStageConfig> data_stages;
  EvalData eval_data;
  EvalConfig eval;
  IclConfig icl;
  CheckpointConfig ckpt;
  LogConfig log;
  ProfileConfig profile;
  std::map<std::string, CallbackConfig> callbacks;
  Bytes lua_memory = {int64_t{256} << 20};
  /// Tokens of each step, set once the data has been read, where padding does not count. Otherwise null.
  std::shared_ptr<const StepTokens> step_tokens = nullptr;

  template <class Visitor>
  void fields(Visitor& v) {
    v("run_name", run_name, "Name of the run; its folder is named after it. Default: the recipe's name.");
    v("run_dir", run_dir, "Folder of the run; {run_name} is replaced by its name.");
    v("resume", resume,
      "auto: resume from the newest checkpoint in the run folder, or start; none: start over; or the path of "
      "a checkpoint.");
    v("seed", seed, "Seed for the initial weights and the data order.", in_range(0, 9007199254740991.0));
    v("device", device, "Where to train; auto uses a GPU if there is one.");
    v("threads", threads, "CPU threads; 0 for one per core.", in_range(0, 4096));
    v("parallel", parallel, "How the ranks of the run share the work.");
    v("machine", machine, "The machines to plan for: a name, or a table.");
    v("precision", precision, "Dtype that the model computes in; master weights and reductions are fp32.");
    v("master_weights", master_weights,
      "What bf16 training updates: fp32 master weights, or the bf16 weights themselves, rounded to nearest "
      "even (none) or stochastically, without bias (stochastic).");
    v("seq_len", seq_len, "Tokens per sequence.", positive);
    v("global_batch", global_batch, "Sequences (sp) or tokens (tok) per optimizer step, over all ranks.",
      units("sp tok"), positive);
    v("micro_batch", micro_batch,
      "Sequences per forward and backward pass; the last pass of a step may have fewer. auto: as many as fit "
      "into memory; a run prints them and keeps them in its recipe. Default: as many as keep a pass near "
      "16384 tokens.",
      units("sp"), positive);
    v("max_duration", max_duration, "Length of the run.", units("ba tok sp ep"), positive, required);
    v("model", model, "The network.", required);
    v("init", init, "What the matrices begin with; a recipe can define its own.");
    v("lora", model.lora, "Adapters of the model's linear layers, trained instead of the model.");
    v("fp8", model.fp8, "Products of linear layers in fp8.");
    v("recompute", recompute, "Which activations are recomputed instead of kept.");
    v("attention", attention, "How attention is computed on GPUs.");
    v("products", products, "How products of matrices are computed on GPUs.");
    v("loss", loss, "What training minimises; a recipe can define its own.");
    v("optimizer", optimizer, "How weights are updated.", required);
    v("param_groups", param_groups, "Parameters with settings of their own; the first matching group wins.");
    v("scheduler", scheduler, "Learning rate over time, as a share of optimizer.lr.");
    v("clip", clip, "Gradient clipping.");
    v("guard", guard, "What to do about NaN, infinity and spikes of the gradient.");
    v("ema", ema, "An exponential moving average of the weights, kept beside them.");
    v("tokenizer", tokenizer,
      "A tokenizer.json; checked against the data and kept with every checkpoint. \"\" for none.");
    v("train_data", train_data, "What to train on.", required);
    v("data_stages", data_stages,
      "Data to change to during the run, in the order of their starts; each begins with its first epoch.");
    v("eval_data", eval_data,
      "What to evaluate on, under names you choose; never shuffled. None: no evaluation.");
    v("eval", eval, "When to measure the loss on eval_data, and on how much of it.");
    v("icl", icl, "In-context evaluation: tasks of LLM Foundry's form, as text.");
    v("ckpt", ckpt, "Checkpoints.");
    v("log", log, "Metrics.");
    v("profile", profile, "Traces of selected steps.");
    v("callbacks", callbacks, "Functions that run on events of the training loop, under names you choose.");
    v("lua_memory", lua_memory,
      "Memory that the recipe's Lua code may use during the run, with the tensors that it keeps: 16MiB to "
      "1TiB.");
  }
};

/// Return global_batch and micro_batch in sequences. Require that check_config passed. A micro_batch of
/// "auto" counts as the default until a run or a plan has chosen it (plan/memory_choice.h).
int64_t global_batch_sequences(const TrainConfig& config);
int64_t micro_batch_sequences(const TrainConfig& config, int64_t num_ranks = 1);
/// Returns the most tokens that the model takes: its max_seq_len, or the seq_len of its training.
int64_t longest_sequence(const TrainConfig& config);
/// Returns the number of passes over a rank's share of the global batch when `num_ranks` ranks read different
/// data.
int64_t micro_batches_per_step(const TrainConfig& config, int64_t num_ranks);
/// Returns true if some data of the run has weights of targets.
bool has_weights(const TrainConfig& config);
/// Returns true when tokens are counted without padding.
bool counts_without_padding(const TrainConfig& config);
/// Returns the number of optimizer steps of the run, rounded up. Epochs need the data set's samples;
/// num_samples is 0 when unknown.
int64_t total_steps(const TrainConfig& config, int64_t num_samples);
/// Returns a duration in optimizer steps, real-valued, for a run of `total_steps` steps.
double in_steps(const Duration& duration, const TrainConfig& config, int64_t total_steps,
                int64_t num_samples);
/// Returns `steps` rounded up to a whole number.
int64_t whole_steps(double steps);
/// Returns run_dir with {run_name} replaced.
std::string run_folder_path(const TrainConfig& config);

}  // namespace tycho
