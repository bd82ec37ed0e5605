// Configuration of callbacks: when they run, what happens when they fail, and the keys of the ready-made
// ones.
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/defined_kind.h"
#include "trainer/base/duration.h"
#include "trainer/base/fields.h"
#include "trainer/base/function_ref.h"
#include "trainer/base/goal.h"
#include "trainer/base/json.h"
#include "trainer/recipe/event.h"

namespace tycho {

enum class OnError { kStop, kDisable, kWarn };
constexpr EnumNames<OnError, 3> enum_names(OnError) {
  return {{{"stop", OnError::kStop}, {"disable", OnError::kDisable}, {"warn", OnError::kWarn}}};
}

/// When a callback runs, and what happens when it fails. Common to all kinds.
struct CallbackOptions {
  std::optional<Duration> every;
  std::vector<Duration> at;
  std::optional<Duration> from, until_;
  int64_t order = 0;
  std::optional<OnError> on_error;
  Duration time_limit = {10, DurationUnit::kSecond};

  template <class Visitor>
  void option_fields(Visitor& v) {
    v("every", every,
      "Call it for events of a step whenever this much training is done; if not set, at every step.",
      units("ba tok sp ep dur"), positive);
    v("at", at, "Call it for events of a step at these moments, in addition to every.",
      units("ba tok sp ep dur"), at_least(0));
    v("from", from, "Inactive before this point.", units("ba tok sp ep dur"), at_least(0));
    v("until_", until_, "Inactive after this point.", units("ba tok sp ep dur"), at_least(0));
    v("order", order, "Callbacks of one event run in this order, then by name.");
    v("on_error", on_error,
      "What to do when it fails: stop the run with a checkpoint, disable the callback, or warn. Default: "
      "stop in the first 100 steps, disable later.");
    v("time_limit", time_limit, "A call that takes longer is ended with an error.", units("s"), positive);
  }
};

/// The functions of a user's callback, by event; callback.h shows when each is called.
struct EventFunctions {
  std::array<std::optional<FunctionRef>, kEvents.size()> functions;
  std::optional<FunctionRef>& operator[](Event event) { return functions[index_of(event)]; }
  const std::optional<FunctionRef>& operator[](Event event) const { return functions[index_of(event)]; }

  template <class Visitor>
  void event_fields(Visitor& v) {
    for (const EventEntry& entry : kEvents) v(entry.name, (*this)[entry.event], entry.help);
  }
};

/// A user's own callback: functions, and plain data that checkpoints keep. Also the base of t.component's
/// callbacks.
struct OwnCallback : CallbackOptions, EventFunctions, DefinedKind {
  Json state = json_object();
  template <class Visitor>
  void fields(Visitor& v) {
    option_fields(v);
    v("state", state, "State, as plain data: passed as the second argument and kept in every checkpoint.");
    event_fields(v);
  }
};

/// Ranks on which an observer runs.
enum class ObserveRanks { kZero, kLocalZero };
constexpr EnumNames<ObserveRanks, 2> enum_names(ObserveRanks) {
  return {{{"zero", ObserveRanks::kZero}, {"local_zero", ObserveRanks::kLocalZero}}};
}

struct ObserveConfig : OwnCallback {
  static constexpr const char* kKind = "observe";
  static constexpr const char* kHelp =
      "Observes, on rank 0 or on one rank of each machine: for metrics, plots and samples.";
  ObserveRanks ranks = ObserveRanks::kZero;
  template <class Visitor>
  void fields(Visitor& v) {
    v("ranks", ranks,
      "zero: only rank 0; local_zero: the first rank of each machine, whose records carry its rank.");
    OwnCallback::fields(v);
  }
};
struct ControlConfig : OwnCallback {
  static constexpr const char* kKind = "control";
  static constexpr const char* kHelp =
      "Steers the run from rank 0: ctx.cmd queues commands that every rank applies at the end of the step.";
};
struct EverywhereConfig : OwnCallback {
  static constexpr const char* kKind = "everywhere";
  static constexpr const char* kHelp = "Runs on every rank, and can reduce over all ranks with ctx.dist.";
};

/// A ready-made callback that runs every `every` steps.
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
  static constexpr const char* kHelp = "Records the peak memory of the device and the memory that Lua holds.";
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
  static constexpr const char* kHelp = "Reports the remaining time of the run.";
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
    v("beta", beta, "Weight of the previous average.", below(0, 1));
    option_fields(v);
  }
};

inline constexpr const char* kEvalMetricHelp =
    "Metric to compare; lower is better: eval.loss over all sets, or eval.NAME.loss of one.";

struct EarlyStopConfig : CallbackOptions {
  static constexpr const char* kKind = "early_stop";
  static constexpr const char* kHelp = "Stops when evaluations no longer improve.";
  std::string metric = "eval.loss";
  int64_t patience = 3;
  double min_delta = 0;
  template <class Visitor>
  void fields(Visitor& v) {
    v("metric", metric, kEvalMetricHelp);
    v("patience", patience, "Number of evaluations in a row without improvement.", positive);
    v("min_delta", min_delta, "How much lower the metric must be to count as an improvement.", at_least(0));
    option_fields(v);
  }
};

struct ThresholdStopConfig : CallbackOptions {
  static constexpr const char* kKind = "threshold_stop";
  static constexpr const char* kHelp = "Stops when an evaluation is good enough.";
  std::string metric = "eval.loss";
  double below = 0;
  template <class Visitor>
  void fields(Visitor& v) {
    v("metric", metric, kEvalMetricHelp);
    v("below", below, "Stops when the metric is lower than this.", required);
    option_fields(v);
  }
};

struct CheckpointBestConfig : CallbackOptions {
  static constexpr const char* kKind = "checkpoint_best";
  static constexpr const char* kHelp =
      "Saves and keeps a checkpoint whenever an evaluation is the best so far.";
  std::string metric = "eval.loss", tag = "best";
  template <class Visitor>
  void fields(Visitor& v) {
    v("metric", metric, kEvalMetricHelp);
    v("tag", tag, "Name of the checkpoint; the newest of each name is kept in addition to ckpt.keep.");
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
    v("sigmas", sigmas, "A spike is this many standard deviations above the average.", positive);
    v("warmup", warmup, "Number of initial steps that only build the average.", units("ba"), at_least(0));
    v("action", action, "What to do about a spike: warn, scale_lr for a while and save, or stop the run.");
    v("factor", factor, "Factor of the learning rate for action = \"scale_lr\".", positive);
    v("for_next", for_next, "How long the factor applies, and how long further spikes are ignored.",
      units("ba"), positive);
    option_fields(v);
  }
};

enum class OutlierAction { kWarn, kStop };
constexpr EnumNames<OutlierAction, 2> enum_names(OutlierAction) {
  return {{{"warn", OutlierAction::kWarn}, {"stop", OutlierAction::kStop}}};
}

struct KillLossSpikeConfig : CallbackOptions {
  static constexpr const char* kKind = "kill_loss_spike";
  static constexpr const char* kHelp =
      "Stops a run whose loss stays high, by the rule of LLM Foundry's kill_loss_spike.";
  OutlierAction action = OutlierAction::kWarn;
  int64_t patience = 4, window = 100;
  double outlier_multiplier = 2, loss_cap = 10;
  template <class Visitor>
  void fields(Visitor& v) {
    v("action", action, "What to do about losses that stay high: warn, or stop the run.");
    v("patience", patience, "Number of outliers in a row that are accepted.", at_least(0));
    v("outlier_multiplier", outlier_multiplier,
      "A loss is an outlier when it is at least this many times the mean of the window.", positive);
    v("window", window, "Number of steps whose losses are remembered.", in_range(1, 10000));
    v("loss_cap", loss_cap,
      "Losses are too high when half of the window is above this, once two windows are done.", positive);
    option_fields(v);
  }
};

struct GenerateSamplesConfig : ReadyCallback {
  static constexpr const char* kKind = "generate";
  static constexpr const char* kHelp = "Generates text with the model in training and writes it to the log.";
  GenerateSamplesConfig() : ReadyCallback(500) {}
  std::vector<std::string> prompts;
  int64_t max_tokens = 32;
  double temperature = 0.8;
  template <class Visitor>
  void fields(Visitor& v) {
    v("prompts", prompts, "Beginnings of the texts.", required);
    v("max_tokens", max_tokens, "Number of tokens to generate after each prompt.", positive);
    v("temperature", temperature, "0 always takes the most likely token.", at_least(0));
    option_fields(v);
  }
};

/// Granularity of statistics.
enum class StatisticsPer { kLayer, kParam };
constexpr EnumNames<StatisticsPer, 2> enum_names(StatisticsPer) {
  return {{{"layer", StatisticsPer::kLayer}, {"param", StatisticsPer::kParam}}};
}

/// Base of the callbacks that record norms.
struct NormsCallback : ReadyCallback {
  StatisticsPer per;
  NormsCallback(double steps, StatisticsPer default_per) : ReadyCallback(steps), per(default_per) {}
  template <class Visitor>
  void fields(Visitor& v) {
    v("per", per, "One norm for each layer, or for each parameter.");
    option_fields(v);
  }
};

struct GradNormConfig : NormsCallback {
  static constexpr const char* kKind = "grad_norm";
  static constexpr const char* kHelp =
      "Records norms of the gradients, before clipping, by layer or by parameter.";
  GradNormConfig() : NormsCallback(10, StatisticsPer::kLayer) {}
};

struct ParamNormConfig : NormsCallback {
  static constexpr const char* kKind = "param_norm";
  static constexpr const char* kHelp = "Records norms of the parameters, by layer or by parameter.";
  ParamNormConfig() : NormsCallback(100, StatisticsPer::kLayer) {}
};

struct OptimizerMonitorConfig : NormsCallback {
  static constexpr const char* kKind = "optimizer_monitor";
  static constexpr const char* kHelp =
      "Records norms of gradients, before clipping, of the optimizer's moments, of parameters and of their "
      "updates, under the names of Composer's optimizer_monitor.";
  OptimizerMonitorConfig() : NormsCallback(10, StatisticsPer::kParam) {}
};

/// Tensors that histograms show.
enum class HistogramsOf { kGradients, kParameters, kBoth };
constexpr EnumNames<HistogramsOf, 3> enum_names(HistogramsOf) {
  return {{{"gradients", HistogramsOf::kGradients},
           {"parameters", HistogramsOf::kParameters},
           {"both", HistogramsOf::kBoth}}};
}

struct HistogramsConfig : ReadyCallback {
  static constexpr const char* kKind = "histograms";
  static constexpr const char* kHelp =
      "Records histograms of gradients, before clipping, and of parameters: in events.jsonl, in "
      "TensorBoard with t.log.tensorboard, and in W&B with t.log.wandb.";
  HistogramsConfig() : ReadyCallback(500) {}
  HistogramsOf of = HistogramsOf::kGradients;
  int64_t bins = 30;
  template <class Visitor>
  void fields(Visitor& v) {
    v("of", of, "One histogram for each gradient, for each parameter, or for both.");
    v("bins", bins, "Number of bins, of equal width.", in_range(1, 1000));
    option_fields(v);
  }
};

struct MachineUseConfig : ReadyCallback {
  static constexpr const char* kKind = "machine_use";
  static constexpr const char* kHelp =
      "Records how busy the processors, the memory and the GPUs of rank 0's machine are, and the space left "
      "for the run folder.";
  MachineUseConfig() : ReadyCallback(10) {}
  template <class Visitor>
  void fields(Visitor& v) {
    option_fields(v);
  }
};

struct ActivationsConfig : ReadyCallback {
  static constexpr const char* kKind = "activations";
  static constexpr const char* kHelp =
      "Records mean square and largest value of the residual stream between layers.";
  ActivationsConfig() : ReadyCallback(25) {}
  template <class Visitor>
  void fields(Visitor& v) {
    option_fields(v);
  }
};

struct NotifyConfig : CallbackOptions {
  static constexpr const char* kKind = "notify";
  static constexpr const char* kHelp =
      "Posts to a webhook of Slack how the run ends, spikes of the loss, stalls, and what ctx.log:alert "
      "says.";
  std::string url_env;
  double sigmas = 6;
  Duration stall = {1800, DurationUnit::kSecond};
  template <class Visitor>
  void fields(Visitor& v) {
    v("url_env", url_env,
      "Name of the variable with the address of the webhook, such as SLACK_WEBHOOK_URL. The address is a "
      "secret, so it is not in the recipe.",
      required);
    v("sigmas", sigmas, "A spike of the loss is this many standard deviations above its average.", positive);
    v("stall", stall, "A run has stalled when no step, evaluation or checkpoint has ended for this long.",
      units("s"), positive);
    option_fields(v);
  }
};

/// t.observe, t.control, t.everywhere, and the ready-made ones of t.cb.
struct CallbackConfig
    : OneOf<ObserveConfig, ControlConfig, EverywhereConfig, SpeedConfig, MemoryConfig, LrConfig,
            RuntimeEstimateConfig, LossEmaConfig, EarlyStopConfig, ThresholdStopConfig, CheckpointBestConfig,
            LossSpikeConfig, KillLossSpikeConfig, GenerateSamplesConfig, GradNormConfig, ParamNormConfig,
            OptimizerMonitorConfig, HistogramsConfig, ActivationsConfig, MachineUseConfig, NotifyConfig> {
  static constexpr const char* kNamespace = "cb";
  const char* kind() const { return kind_name(value); }
};

/// Returns the options that every kind has.
const CallbackOptions& callback_options(const CallbackConfig& config);

class ConfigProblems;

/// Reports problems of the callback at `path` ("callbacks.NAME"). `eval_metrics` are the metrics of the run's
/// evaluations.
void check(const CallbackConfig& callback, const std::string& path,
           const std::vector<std::string>& eval_metrics, bool has_tokenizer, ConfigProblems& problems);

}  // namespace tycho
