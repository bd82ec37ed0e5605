// An open run: the engine's interface for the REPL, callbacks and `tycho run`. Torch-free.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/duration.h"
#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/callbacks/command.h"
#include "trainer/metrics/reporter.h"
#include "trainer/metrics/step_metrics.h"
#include "trainer/session/eval_result.h"
#include "trainer/session/tensor_view.h"
#include "trainer/state/train_state.h"

namespace tycho {

/// Facts that stay the same while a session is open.
struct SessionFacts {
  RunInfo run;
  int rank = 0;            // 0 writes the run's record
  Json recipe;             // resolved, every key
  int64_t num_layers = 0;  // blocks
  std::string checkpoint;  // the one that it resumed from; "" for a fresh start
  /// Lines "key  checkpoint's -> recipe's" for the keys in which the recipe asks for another run than the
  /// checkpoint's; "" when there are none.
  std::string asks_for_other;
  bool has_tokenizer = false;
  bool is_sharded = false;  // ranks share the parameters, so reading them is collective
};

/// A learning rate that a command pinned.
struct LrPin {
  double scheduled = 0;  // rate of the newest step by the schedule
  std::string by;
};

struct SessionState {
  TrainState train;
  /// The step that new records belong to: train.step, or the next one while a callback runs in it.
  int64_t recorded_step = 0;
  std::optional<StepMetrics>
      last;                 // metrics of the newest step; nullopt before the first one of this process
  std::string stop_reason;  // why a command stopped the run; "" when none did
  std::optional<LrPin> lr_pin;
};

/// One parameter, in forward order.
struct ParamInfo {
  std::string name;  // Hugging Face's name
  std::vector<int64_t> shape;
  int64_t layer = -1;  // index of the block from 0; -1 for embedding and head
  bool frozen = false;
};

/// Parameters with the same settings in the optimizer.
struct OptimizerGroup {
  double lr_scale = 1, weight_decay = 0;
  std::array<double, 2> betas = {0, 0};
  bool frozen = false;
  std::vector<std::string> params;
};

/// The optimizer with the settings of the next step.
struct OptimizerState {
  Json config;  // its fields, and "kind"
  double lr = 0, clip_norm = 0;
  std::vector<OptimizerGroup> groups;
};

/// The profiler of this rank before the next step.
struct ProfileState {
  std::string phase;  // of the schedule: "wait", "warmup", "active"; "off" when nothing will be recorded
  std::string path;   // newest trace of this process; "" before the first
};

struct SavedCheckpoint {
  std::string path;
  int64_t step = 0;
};

struct TextOptions {
  int64_t max_tokens = 128;
  double temperature = 1;  // 0: greedy
  int64_t top_k = 0;       // 0: off
  double top_p = 1;
  double repetition_penalty = 1;  // 1: none
  std::vector<std::string> stop;
  bool ignore_eos = false;
  uint64_t seed = 0;
};

/// Memory of the training device in bytes. `before` is what this process had in use when the run was opened;
/// on a CPU that is the program and LibTorch.
struct MemoryUse {
  int64_t allocated = 0, peak = 0, total = 0, before = 0;
};

/// A sequence that training will see.
struct PeekedSequence {
  std::vector<int32_t> tokens;
  std::vector<int32_t> labels;  // target of each token; negative where nothing is learned
  bool operator==(const PeekedSequence&) const = default;
};

/// Owned by the thread that opened it, which makes every call. Methods throw Error. Methods that take long
/// end early, at a whole step, batch or token, when the stop flag that the session was opened with is not 0.
class TrainingSession {
 public:
  /// Closes the session.
  virtual ~TrainingSession() = default;

  virtual const SessionFacts& facts() const = 0;
  virtual SessionState state() const = 0;
  virtual const std::vector<ParamInfo>& params() const = 0;

  /// Queues a command and checks it (make_command). It takes effect at the boundary before the next step.
  virtual void command(Command command) = 0;
  /// Trains up to n optimizer steps and returns their metrics; fewer at the end of the run and after a stop.
  /// Evaluates and saves only on command.
  virtual std::vector<StepMetrics> step(int64_t n) = 0;
  /// Trains for a part of the run like `tycho run`, with evaluations and checkpoints when they are due.
  virtual void run_for(const Duration& length) = 0;
  /// Trains to the end or a stop, and saves. Returns the signal that stopped it, or 0.
  virtual int fit() = 0;
  /// Evaluates all sets of eval_data as the run itself does. With a name, evaluates that set alone, without
  /// callbacks or a record in checkpoints. Returns nullopt when it was stopped. Throws Error (kUsage) without
  /// eval_data and for an unknown name.
  virtual std::optional<EvalResults> evaluate(const std::string& set) = 0;
  /// Saves a checkpoint. Durable when it returns.
  virtual SavedCheckpoint save() = 0;
  /// Replaces all state by that of a checkpoint of this model: its folder, or a run's folder for the newest
  /// one. Throws Error (kUnusable) and changes nothing when it cannot be read whole.
  virtual SavedCheckpoint load(const std::string& path) = 0;
  /// Ends the run's record. The memory is freed with the session. `reason` is for display; `failure` is the
  /// exit code of the error that ended the run, if any.
  virtual void close(const std::string& reason, std::optional<ExitCode> failure) = 0;

  /// Returns a view of a parameter by its position in params(). Valid while the session lives; its values
  /// change with every step.
  virtual std::unique_ptr<TensorView> weight(int64_t param) = 0;
  /// Returns the gradient of the newest step, fp32. Null for a frozen parameter.
  virtual std::unique_ptr<TensorView> grad(int64_t param) = 0;
  /// Returns a copy of the optimizer's state for a parameter, fp32, under its name in checkpoints: "exp_avg".
  /// Null when there is none of that name that has a number for each of its elements.
  virtual std::unique_ptr<TensorView> moment(int64_t param, const std::string& name) = 0;

  virtual OptimizerState optimizer() const = 0;
  /// Returns the peak learning rate times the schedule for the optimizer step after `steps_done` steps.
  virtual double lr_at(int64_t steps_done) const = 0;

  /// Continues a prompt. Returns nullopt when it was stopped. Throws Error (kUsage) without a tokenizer.
  virtual std::optional<std::string> generate(const std::string& prompt, const TextOptions& options,
                                              const std::function<void(const std::string&)>& emit) = 0;
  /// Continues a prompt of tokens and returns the chosen ones. Needs no tokenizer; with one, a special token
  /// ends the text.
  virtual std::optional<std::vector<int32_t>> generate_tokens(const std::vector<int32_t>& prompt,
                                                              const TextOptions& options) = 0;
  /// Returns the logits after the last of these tokens, fp32 [vocabulary], or after each of them, [tokens,
  /// vocabulary], as a new tensor.
  virtual std::unique_ptr<TensorView> logits(const std::vector<int32_t>& tokens, bool every_position) = 0;
  /// Returns the residual stream before each block and after the last one, [tokens, width] each, as new
  /// tensors.
  virtual std::vector<std::unique_ptr<TensorView>> activations(const std::vector<int32_t>& tokens) = 0;
  /// Returns the attention weights of a layer (from 0) over these tokens, [heads, tokens, tokens], as a new
  /// tensor: row t holds the share of each token in what token t attends to. Throws Error (kUsage) for an
  /// unknown layer, and with tp or pp.
  virtual std::unique_ptr<TensorView> attention(const std::vector<int32_t>& tokens, int64_t layer) = 0;
  /// Throw Error (kUsage) without a tokenizer.
  virtual std::vector<int32_t> encode(const std::string& text) const = 0;
  virtual std::string decode(const std::vector<int32_t>& tokens) const = 0;

  /// Starts a profile, which records all calls until profile_end. Throws Error (kUsage) while a profile is
  /// recorded.
  virtual void profile_begin() = 0;
  /// Ends the profile. Returns {path of the trace, ranges: [{name, calls, seconds}]}, longest first.
  virtual Json profile_end() = 0;
  virtual ProfileState profile_state() const = 0;

  /// Returns the next n sequences. Training still gets them.
  virtual std::vector<PeekedSequence> peek(int64_t n) const = 0;
  /// Adds an event to the run's record and its display (Reporter::event).
  virtual void event(const std::string& kind, const std::string& text, const Json& facts) = 0;
  /// Adds a number of this step to metrics.jsonl.
  virtual void metric(const std::string& name, double value) = 0;
  virtual MemoryUse memory() const = 0;
};

}  // namespace tycho
