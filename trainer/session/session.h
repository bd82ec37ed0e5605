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
#include "trainer/eval/result.h"
#include "trainer/loop/train_state.h"
#include "trainer/metrics/reporter.h"
#include "trainer/metrics/step_metrics.h"
#include "trainer/session/tensor_view.h"

namespace tycho {

/// What does not change while a session is open.
struct SessionFacts {
  RunInfo run;
  int rank = 0;            // 0 writes the run's record
  Json recipe;             // resolved, every key
  int64_t num_layers = 0;  // blocks
  std::string checkpoint;  // the one that it went on from, "" for a fresh start
  /// Lines "key  checkpoint's -> recipe's" where the recipe wants another run than the checkpoint's; "" when
  /// it does not.
  std::string asks_for_other;
  bool has_tokenizer = false;
  bool is_sharded = false;  // ranks share the parameters: a look at them is collective
};

/// A learning rate that a command pinned.
struct LrPin {
  double scheduled = 0;  // what the newest step would have had
  std::string by;
};

struct SessionState {
  TrainState train;
  /// What is recorded now belongs to it: train.step, or the next one while a callback looks into that.
  int64_t recorded_step = 0;
  std::optional<StepMetrics> last;  // of the newest step; none before the first one of this process
  std::string stop_reason;          // why a command stopped the run; "" when none did
  std::optional<LrPin> lr_pin;
};

/// One parameter, in forward order.
struct ParamInfo {
  std::string name;  // as Hugging Face names it
  std::vector<int64_t> shape;
  int64_t layer = -1;  // block, from 0; -1 for embedding and head
  bool frozen = false;
};

/// Parameters that the optimizer treats alike.
struct OptimizerGroup {
  double lr_scale = 1, weight_decay = 0;
  std::array<double, 2> betas = {0, 0};
  bool frozen = false;
  std::vector<std::string> params;
};

/// The optimizer as the next step will use it.
struct OptimizerState {
  Json config;  // its fields and "kind"
  double lr = 0, clip_norm = 0;
  std::vector<OptimizerGroup> groups;
};

/// The profiler of this rank, as the next step will find it.
struct ProfileState {
  std::string phase;  // of the schedule: "wait", "warmup", "active"; "off" when nothing will be recorded
  std::string path;   // of the newest trace of this process; "" before the first
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

/// Bytes of the device that trains. `before`: what this process had there when the run was opened; on a CPU
/// that is the program and LibTorch.
struct MemoryUse {
  int64_t allocated = 0, peak = 0, total = 0, before = 0;
};

/// A sequence that training will see.
struct PeekedSequence {
  std::vector<int32_t> tokens;
  std::vector<int32_t> labels;  // what each token is to be followed by; negative where nothing is learned
  bool operator==(const PeekedSequence&) const = default;
};

/// Owned by the thread that opened it, which makes every call. Methods throw Error. Those that take long end
/// early, at a whole step, batch or token, when the stop flag that the session was opened with is not 0.
class TrainingSession {
 public:
  /// Closes it.
  virtual ~TrainingSession() = default;

  virtual const SessionFacts& facts() const = 0;
  virtual SessionState state() const = 0;
  virtual const std::vector<ParamInfo>& params() const = 0;

  /// Queues a command, checked (make_command): it acts at the boundary before the next step.
  virtual void command(Command command) = 0;
  /// Up to n optimizer steps: evaluates and saves only where that is commanded. Fewer at the end of the run
  /// and after a stop. Returns their metrics.
  virtual std::vector<StepMetrics> step(int64_t n) = 0;
  /// Trains on for a part of the run as `tycho run` does, with evaluation and checkpoints when they are due.
  virtual void run_for(const Duration& length) = 0;
  /// Trains to the end or a stop, and saves. Returns the signal that stopped it, or 0.
  virtual int fit() = 0;
  /// All sets of eval_data, as the run itself evaluates; with a name that set alone: a look, which callbacks
  /// do not hear of and no checkpoint remembers. Nothing when it was stopped. Throws Error (kUsage) without
  /// eval_data and for a name that is not there.
  virtual std::optional<EvalResults> evaluate(const std::string& set) = 0;
  /// Durable when it returns.
  virtual SavedCheckpoint save() = 0;
  /// Takes all state from a checkpoint of this model, instead of what there is now: its folder, or a run's
  /// for the newest one. Throws Error (kUnusable) and changes nothing when it cannot be read whole.
  virtual SavedCheckpoint load(const std::string& path) = 0;
  /// Ends the run's record; the memory goes with the session. `reason` is for people; `failure`: the error's
  /// exit code, when one ended it.
  virtual void close(const std::string& reason, std::optional<ExitCode> failure) = 0;

  /// By position in params(). Views: they hold while the session lives, and change with every step.
  virtual std::unique_ptr<TensorView> weight(int64_t param) = 0;
  /// What the newest step left; fp32. Null for a frozen parameter.
  virtual std::unique_ptr<TensorView> grad(int64_t param) = 0;
  /// What the optimizer keeps of it, fp32, under the name that a checkpoint has: "exp_avg". A copy; null
  /// where it keeps nothing of that name.
  virtual std::unique_ptr<TensorView> moment(int64_t param, const std::string& name) = 0;

  virtual OptimizerState optimizer() const = 0;
  /// Peak learning rate times the schedule, for the optimizer step that follows `steps_done` steps.
  virtual double lr_at(int64_t steps_done) const = 0;

  /// Goes on from a prompt. Nothing when it was stopped. Throws Error (kUsage) without a tokenizer.
  virtual std::optional<std::string> generate(const std::string& prompt, const TextOptions& options,
                                              const std::function<void(const std::string&)>& emit) = 0;
  /// The same from tokens to tokens: those that were chosen. Wants no tokenizer; with one a special token
  /// ends them.
  virtual std::optional<std::vector<int32_t>> generate_tokens(const std::vector<int32_t>& prompt,
                                                              const TextOptions& options) = 0;
  /// Logits after the last of these tokens, fp32 [vocabulary], or after each of them, [tokens, vocabulary]: a
  /// tensor of its own.
  virtual std::unique_ptr<TensorView> logits(const std::vector<int32_t>& tokens, bool every_position) = 0;
  /// The stream before each block and after the last one, [tokens, width] each: tensors of their own.
  virtual std::vector<std::unique_ptr<TensorView>> activations(const std::vector<int32_t>& tokens) = 0;
  /// Attention weights of a layer (from 0) over these tokens, [heads, tokens, tokens]: row t holds the share
  /// of each token in what token t attends to. A tensor of its own. Throws Error (kUsage) for a layer that is
  /// not there, and with tp or pp.
  virtual std::unique_ptr<TensorView> attention(const std::vector<int32_t>& tokens, int64_t layer) = 0;
  /// Throw Error (kUsage) without a tokenizer.
  virtual std::vector<int32_t> encode(const std::string& text) const = 0;
  virtual std::string decode(const std::vector<int32_t>& tokens) const = 0;

  /// What is called in between is recorded. Throws Error (kUsage) while a profile is recorded.
  virtual void profile_begin() = 0;
  /// {path of the trace, ranges: [{name, calls, seconds}]}, those that took longest first.
  virtual Json profile_end() = 0;
  virtual ProfileState profile_state() const = 0;

  /// The next n sequences; training still gets them.
  virtual std::vector<PeekedSequence> peek(int64_t n) const = 0;
  /// Adds an event to the run's record and its display (Reporter::event).
  virtual void event(const std::string& kind, const std::string& text, const Json& facts) = 0;
  /// Adds a number of this step to metrics.jsonl.
  virtual void metric(const std::string& name, double value) = 0;
  virtual MemoryUse memory() const = 0;
};

}  // namespace tycho
