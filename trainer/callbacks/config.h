// What callbacks can be told: when they run, what happens when they fail, and the knobs of the ready ones.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/duration.h"
#include "trainer/base/fields.h"
#include "trainer/base/function_ref.h"
#include "trainer/base/goal.h"

namespace tycho {

enum class OnError { kStop, kDisable, kWarn };
constexpr EnumNames<OnError, 3> enum_names(OnError) {
  return {{{"stop", OnError::kStop}, {"disable", OnError::kDisable}, {"warn", OnError::kWarn}}};
}

/// When a callback runs, and how it may fail. Every kind has these.
struct CallbackOptions {
  std::optional<Duration> every;
  std::vector<Duration> at;
  std::optional<Duration> from, until_;
  int64_t order = 0;
  std::optional<OnError> on_error;
  Duration time_limit = {10, DurationUnit::kSecond};

  template <class Visitor>
  void option_fields(Visitor& v) {
    v("every", every, "Events of steps reach it each time this much training is done. Default: every step.",
      units("ba tok sp ep dur"), positive);
    v("at", at, "Events of steps reach it at these moments, beside those of every.",
      units("ba tok sp ep dur"), at_least(0));
    v("from", from, "It sleeps before this.", units("ba tok sp ep dur"), at_least(0));
    v("until_", until_, "It sleeps after this.", units("ba tok sp ep dur"), at_least(0));
    v("order", order, "Callbacks of an event run by order, then by name.");
    v("on_error", on_error,
      "What an error in it does: stop the run with a checkpoint, disable it, or warn. Default: stop in the "
      "first 100 steps, disable it later.");
    v("time_limit", time_limit, "A call that takes longer is ended, as an error.", units("s"), positive);
  }
};

/// The functions of a callback of one's own, by event; callback.h draws when each is called.
struct EventFunctions {
  std::optional<FunctionRef> setup, load, fit_start, epoch_start, batch_start, after_forward, grads_ready,
      batch_end, epoch_end, eval_start, eval_end, ckpt_saved, signal, error, fit_end;

  template <class Visitor>
  void event_fields(Visitor& v) {
    v("setup", setup, "Everything is built, nothing is loaded.");
    v("load", load, "Weights and state are there.");
    v("fit_start", fit_start, "Before the first step of this process.");
    v("epoch_start", epoch_start, "Before the first batch of an epoch.");
    v("batch_start", batch_start, "Before the first micro-batch of a step.");
    v("after_forward", after_forward, "Between forward and backward of the last micro-batch.");
    v("grads_ready", grads_ready, "Gradients are complete, not clipped yet.");
    v("batch_end", batch_end, "After the optimizer step.");
    v("epoch_end", epoch_end, "After the last batch of an epoch.");
    v("eval_start", eval_start, "Before an evaluation.");
    v("eval_end", eval_end, "After an evaluation.");
    v("ckpt_saved", ckpt_saved, "A checkpoint is durable; some steps after its save began.");
    v("signal", signal, "A signal asked the run to stop; the next step boundary saves.");
    v("error", error, "Something failed that training goes on after.");
    v("fit_end", fit_end, "After the last step of this process.");
  }
};

/// A callback of one's own: functions, and plain data that checkpoints keep.
struct OwnCallback : CallbackOptions, EventFunctions {
  Json state = Json::object();
  template <class Visitor>
  void fields(Visitor& v) {
    option_fields(v);
    v("state", state, "What it remembers, as plain data: its second argument, kept in every checkpoint.");
    event_fields(v);
  }
};

/// Where an observer runs.
enum class ObserveRanks { kZero, kLocalZero };
constexpr EnumNames<ObserveRanks, 2> enum_names(ObserveRanks) {
  return {{{"zero", ObserveRanks::kZero}, {"local_zero", ObserveRanks::kLocalZero}}};
}

struct ObserveConfig : OwnCallback {
  static constexpr const char* kKind = "observe";
  static constexpr const char* kHelp =
      "Looks, on rank 0 or on one rank of each machine: for metrics, plots and samples.";
  ObserveRanks ranks = ObserveRanks::kZero;
  template <class Visitor>
  void fields(Visitor& v) {
    v("ranks", ranks,
      "zero: rank 0 alone; local_zero: the first rank of each machine, whose records carry its number.");
    OwnCallback::fields(v);
  }
};
struct ControlConfig : OwnCallback {
  static constexpr const char* kKind = "control";
  static constexpr const char* kHelp =
      "Decides, on rank 0: ctx.cmd queues what every rank does at the step's end.";
};
struct EverywhereConfig : OwnCallback {
  static constexpr const char* kKind = "everywhere";
  static constexpr const char* kHelp = "Runs on every rank alike, and may reduce over them with ctx.dist.";
};

/// A ready callback that runs each so many steps.
struct ReadyCallback : CallbackOptions {
  explicit ReadyCallback(double steps) { every = Duration{steps, DurationUnit::kBatch}; }
};

struct SpeedConfig : ReadyCallback {
  static constexpr const char* kKind = "speed";
  static constexpr const char* kHelp = "Records batches, samples and tokens per second.";
  SpeedConfig() : ReadyCallback(10) {}
  template <class Visitor>
  void fields(Visitor& v) {
    option_fields(v);
  }
};

struct MemoryConfig : ReadyCallback {
  static constexpr const char* kKind = "memory";
  static constexpr const char* kHelp = "Records the peak memory of the device, and what Lua holds.";
  MemoryConfig() : ReadyCallback(10) {}
  template <class Visitor>
  void fields(Visitor& v) {
    option_fields(v);
  }
};

struct LrConfig : ReadyCallback {
  static constexpr const char* kKind = "lr";
  static constexpr const char* kHelp = "Records the learning rate of every parameter group.";
  LrConfig() : ReadyCallback(1) {}
  template <class Visitor>
  void fields(Visitor& v) {
    option_fields(v);
  }
};

struct RuntimeEstimateConfig : ReadyCallback {
  static constexpr const char* kKind = "runtime_estimate";
  static constexpr const char* kHelp = "Says how long the run will still take.";
  RuntimeEstimateConfig() : ReadyCallback(100) {}
  template <class Visitor>
  void fields(Visitor& v) {
    option_fields(v);
  }
};

struct LossEmaConfig : ReadyCallback {
  static constexpr const char* kKind = "loss_ema";
  static constexpr const char* kHelp = "Records a moving average of the loss.";
  LossEmaConfig() : ReadyCallback(1) {}
  double beta = 0.98;
  template <class Visitor>
  void fields(Visitor& v) {
    v("beta", beta, "Weight of the past.", below(0, 1));
    option_fields(v);
  }
};

inline constexpr const char* kEvalMetricHelp =
    "What is compared, and should be low: eval.loss over all sets, or eval.NAME.loss of one.";

struct EarlyStopConfig : CallbackOptions {
  static constexpr const char* kKind = "early_stop";
  static constexpr const char* kHelp = "Stops when evaluations no longer get better.";
  std::string metric = "eval.loss";
  int64_t patience = 3;
  double min_delta = 0;
  template <class Visitor>
  void fields(Visitor& v) {
    v("metric", metric, kEvalMetricHelp);
    v("patience", patience, "Evaluations in a row without a better one.", positive);
    v("min_delta", min_delta, "How much lower one must be to count as better.", at_least(0));
    option_fields(v);
  }
};

struct CheckpointBestConfig : CallbackOptions {
  static constexpr const char* kKind = "checkpoint_best";
  static constexpr const char* kHelp =
      "Saves a checkpoint, which is kept, when an evaluation is the best so far.";
  std::string metric = "eval.loss", tag = "best";
  template <class Visitor>
  void fields(Visitor& v) {
    v("metric", metric, kEvalMetricHelp);
    v("tag", tag, "Name of the checkpoint; the newest of a name is kept beside ckpt.keep.");
    option_fields(v);
  }
};

enum class SpikeAction { kWarn, kScaleLr, kStop };
constexpr EnumNames<SpikeAction, 3> enum_names(SpikeAction) {
  return {{{"warn", SpikeAction::kWarn}, {"scale_lr", SpikeAction::kScaleLr}, {"stop", SpikeAction::kStop}}};
}

struct LossSpikeConfig : CallbackOptions {
  static constexpr const char* kKind = "loss_spike";
  static constexpr const char* kHelp = "Watches for a loss far above its moving average.";
  double sigmas = 6;
  Duration warmup = {100, DurationUnit::kBatch};
  SpikeAction action = SpikeAction::kWarn;
  double factor = 0.5;
  Duration for_next = {200, DurationUnit::kBatch};
  template <class Visitor>
  void fields(Visitor& v) {
    v("sigmas", sigmas, "Standard deviations above the average that are a spike.", positive);
    v("warmup", warmup, "Steps that only make the average.", units("ba"), at_least(0));
    v("action", action, "What a spike does: warn, scale_lr for a while and save, or stop the run.");
    v("factor", factor, "What action = \"scale_lr\" multiplies the learning rate by.", positive);
    v("for_next", for_next, "How long it does, and how long further spikes are passed over.", units("ba"),
      positive);
    option_fields(v);
  }
};

struct GenerateSamplesConfig : ReadyCallback {
  static constexpr const char* kKind = "generate";
  static constexpr const char* kHelp = "Writes text from the model in training to the log.";
  GenerateSamplesConfig() : ReadyCallback(500) {}
  std::vector<std::string> prompts;
  int64_t max_tokens = 32;
  double temperature = 0.8;
  template <class Visitor>
  void fields(Visitor& v) {
    v("prompts", prompts, "What the texts begin with.", required);
    v("max_tokens", max_tokens, "Tokens after each prompt.", positive);
    v("temperature", temperature, "0 takes the likeliest token each time.", at_least(0));
    option_fields(v);
  }
};

/// Which numbers statistics are kept of apart.
enum class StatisticsPer { kLayer, kParam };
constexpr EnumNames<StatisticsPer, 2> enum_names(StatisticsPer) {
  return {{{"layer", StatisticsPer::kLayer}, {"param", StatisticsPer::kParam}}};
}

struct GradNormConfig : ReadyCallback {
  static constexpr const char* kKind = "grad_norm";
  static constexpr const char* kHelp =
      "Records norms of the gradients, before clipping, by layer or by parameter.";
  GradNormConfig() : ReadyCallback(10) {}
  StatisticsPer per = StatisticsPer::kLayer;
  template <class Visitor>
  void fields(Visitor& v) {
    v("per", per, "One norm for each layer, or for each parameter.");
    option_fields(v);
  }
};

struct ActivationsConfig : ReadyCallback {
  static constexpr const char* kKind = "activations";
  static constexpr const char* kHelp = "Records mean square and largest value of the stream between layers.";
  ActivationsConfig() : ReadyCallback(25) {}
  template <class Visitor>
  void fields(Visitor& v) {
    option_fields(v);
  }
};

/// t.observe, t.control, t.everywhere, and t.cb's ready ones.
struct CallbackConfig
    : OneOf<ObserveConfig, ControlConfig, EverywhereConfig, SpeedConfig, MemoryConfig, LrConfig,
            RuntimeEstimateConfig, LossEmaConfig, EarlyStopConfig, CheckpointBestConfig, LossSpikeConfig,
            GenerateSamplesConfig, GradNormConfig, ActivationsConfig> {
  static constexpr const char* kNamespace = "cb";
};

/// The options that every kind has.
inline const CallbackOptions& callback_options(const CallbackConfig& config) {
  return std::visit([](const auto& kind) -> const CallbackOptions& { return kind; }, config.value);
}

class ConfigProblems;

/// Reports what is wrong with the callback at `path` ("callbacks.NAME"). eval_metrics: what evaluations of
/// the run measure.
void check(const CallbackConfig& callback, const std::string& path,
           const std::vector<std::string>& eval_metrics, bool has_tokenizer, ConfigProblems& problems);

}  // namespace tycho
