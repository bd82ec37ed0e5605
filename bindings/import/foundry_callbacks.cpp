// LLM Foundry's callbacks and loggers.
#include <fmt/format.h>

#include <cmath>
#include <cstdlib>

#include "bindings/import/systems.h"
#include "trainer/base/duration.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

const char* const kMetrics = "metrics are always written to the run folder";
const char* const kByHand =
    "a run exports nothing itself: tycho convert RUN FOLDER --follow exports every checkpoint beside it";

// ---- early_stopper ----

/// Returns a time in Composer's form; bare numbers are epochs.
std::optional<Duration> time_of(Mapper& mapper, const DocNode* node) {
  if (node == nullptr) return std::nullopt;
  const DocScalar scalar = mapper.value(node);
  try {
    return Duration::parse(scalar.is(DocScalar::Kind::kInteger) ? scalar.text + "ep" : scalar.text);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Maps patience. Composer counts time since the best evaluation, Tycho counts evaluations.
void map_patience(Mapper& mapper, const DocEntry& entry) {
  const std::optional<Duration> patience = time_of(mapper, &entry.node);
  Duration every = {1, DurationUnit::kEpoch};
  if (const DocNode* given = mapper.root().find("eval_interval")) {
    const std::optional<Duration> read = time_of(mapper, given);
    if (read) every = *read;
  }
  if (!patience || patience->unit != every.unit)
    return mapper.problem(
        entry,
        fmt::format(
            "expected a time in the same unit as eval_interval = {}: here patience is counted in evaluations",
            every.str()));
  mapper.emit(entry, "patience",
              fmt::format("{:.0f}", std::max(1.0, std::ceil(patience->value / every.value))));
}

/// Maps the monitored metric. Only losses are measured, none that should be high.
void map_monitor(Mapper& mapper, const DocEntry& entry) {
  const std::string metric = mapper.text_of(&entry.node);
  const DocNode* comp = mapper.root().at("callbacks.early_stopper.comp");
  const std::string order = mapper.is_null(comp) ? "" : mapper.text_of(comp);
  const bool perplexity = metric == "LanguagePerplexity", loss = metric == "LanguageCrossEntropy";
  if (!perplexity && !loss)
    return mapper.problem(entry, "evaluations measure LanguageCrossEntropy and LanguagePerplexity");
  if (order.empty() && !perplexity)
    return mapper.problem(entry, "without comp: less, Composer stops when the metric falls: add comp: less");
  if (order != "" && order != "less" && order != "lt")
    return mapper.problem({entry.path, *comp}, "a lower loss is better: write comp: less");
  if (perplexity && !mapper.is_null(mapper.root().at("callbacks.early_stopper.min_delta")))
    return mapper.problem(entry,
                          "with min_delta, monitor LanguageCrossEntropy, which has the scale of the loss");
  const DocNode* label = mapper.root().at("callbacks.early_stopper.dataloader_label");
  const std::string set = mapper.is_null(label) ? "" : mapper.text_of(label);
  if (set == "train") return mapper.problem(entry, "evaluations are watched: write dataloader_label: eval");
  const bool one = set.empty() || set == "eval";
  mapper.emit(
      entry, "metric",
      lua_quoted(one ? "eval.loss"
                     : "eval." + set.substr(set.find('/') == std::string::npos ? 0 : set.find('/') + 1) +
                           ".loss"));
}

Rows early_stopper_rows() {
  return {by("monitor", map_monitor), elsewhere("dataloader_label"), elsewhere("comp"),
          to("min_delta", "min_delta"), by("patience", map_patience)};
}

void map_early_stopper(Mapper& mapper, const DocEntry& entry) {
  if (foundry_is_never(mapper, mapper.root().find("eval_interval")))
    return mapper.remark(entry, kNeverEvaluated);
  std::vector<std::string> fields;
  if (entry.node.find("patience") == nullptr) {
    const std::optional<Duration> every = time_of(mapper, mapper.root().find("eval_interval"));
    const bool epochs = !every || every->unit == DurationUnit::kEpoch;
    if (!epochs) return mapper.problem(entry, "expected patience, in the same unit as eval_interval");
    fields.push_back(
        fmt::format("patience = {:.0f}", std::max(1.0, std::ceil(1 / (every ? every->value : 1)))));
  }
  mapper.component(entry, "callbacks.early_stopper", "t.cb.early_stop", early_stopper_rows(), fields);
}

// ---- generate_callback ----

void map_sampling(Mapper& mapper, const DocEntry& entry) {
  if (mapper.text_of(&entry.node) == "true") return mapper.remark(entry, "by temperature");
  mapper.emit(entry, "temperature", "0");
}

void map_temperature(Mapper& mapper, const DocEntry& entry) {
  const DocNode* sampling = mapper.root().at("callbacks.generate_callback.do_sample");
  if (sampling == nullptr || mapper.text_of(sampling) != "true")
    return mapper.remark(entry, "without do_sample the most likely token is taken");
  to("", "temperature").act(mapper, entry);
}

Rows generate_rows() {
  const char* const kCut = "all tokens can be drawn here";
  return {to("prompts", "prompts"),
          to("interval", "every", duration_in("ep")),
          to("max_new_tokens", "max_tokens"),
          by("do_sample", map_sampling),
          by("temperature", map_temperature),
          left_out("batch_size", "prompts are processed one by one"),
          left_out("use_cache", "generation always does this"),
          noted("top_p", {"null", "1.0", "1"}, kCut),
          noted("top_k", {"null", "0"}, kCut),
          noted("max_length", {"null"}, "counts the prompt, too: write max_new_tokens")};
}

void map_generate(Mapper& mapper, const DocEntry& entry) {
  std::vector<std::string> fields;
  const DocNode* sampling = entry.node.find("do_sample");
  if (sampling == nullptr) fields.emplace_back("temperature = 0");
  const bool samples = sampling != nullptr && mapper.text_of(sampling) == "true";
  if (samples && entry.node.find("temperature") == nullptr) fields.emplace_back("temperature = 1");
  mapper.component(entry, "callbacks.generate_callback", "t.cb.generate", generate_rows(), fields);
}

// ---- kill_loss_spike ----

void map_log_only(Mapper& mapper, const DocEntry& entry) {
  mapper.emit(entry, "action", mapper.text_of(&entry.node) == "false" ? "\"stop\"" : "\"warn\"");
}

Rows kill_loss_spike_rows() {
  return {by("log_only", map_log_only), to("patience", "patience"),
          to("outlier_multiplier", "outlier_multiplier"), to("window_size", "window"),
          to("loss_cap", "loss_cap")};
}

void map_kill_loss_spike(Mapper& mapper, const DocEntry& entry) {
  mapper.component(entry, "callbacks.kill_loss_spike", "t.cb.kill_loss_spike", kill_loss_spike_rows(), {});
}

void map_system_metrics(Mapper& mapper, const DocEntry& entry) {
  mapper.note(entry, "processors, memory, disk and GPUs of rank 0's machine");
  mapper.component(entry, "callbacks.system_metrics_monitor", "t.cb.machine_use",
                   {left_out("gpu_available", "GPUs are looked at where NVIDIA's driver is")}, {});
}

void map_optimizer_interval(Mapper& mapper, const DocEntry& entry) {
  mapper.emit(entry, "every", lua_quoted(mapper.text_of(&entry.node) + "ba"));
}

void map_optimizer_metrics(Mapper& mapper, const DocEntry& entry) {
  mapper.remark(entry, "moments and updates are recorded in any case");
}

void map_optimizer_monitor(Mapper& mapper, const DocEntry& entry) {
  mapper.component(
      entry, "callbacks.optimizer_monitor", "t.cb.optimizer_monitor",
      {by("batch_log_interval", map_optimizer_interval), by("log_optimizer_metrics", map_optimizer_metrics)},
      {});
}

Rows eval_output_rows() {
  return {left_out("log_tokens", "texts are recorded, not tokens"),
          left_out("log_output_text", "texts are always recorded")};
}

void map_eval_outputs(Mapper& mapper, const DocEntry& entry) {
  mapper.walk(entry, eval_output_rows());
  mapper.emit(entry, "icl.outputs", "true");
}

void map_compute_interval(Mapper& mapper, const DocEntry& entry) {
  mapper.emit(entry, "log.loss_by_position", lua_quoted(mapper.text_of(&entry.node) + "ba"));
}

Rows loss_by_length_rows() {
  return {by("compute_batch_interval", map_compute_interval),
          left_out("log_batch_interval", "a table is recorded as soon as it is computed"),
          only("ignore_index", {"-100"}, "tokens without a target are -100 here: leave ignore_index out")};
}

void map_loss_by_length(Mapper& mapper, const DocEntry& entry) {
  if (entry.node.find("compute_batch_interval") == nullptr)
    return mapper.problem(entry, "expected compute_batch_interval, which LLM Foundry needs, too");
  mapper.note(entry, "means are those of one batch, not of all batches since the start");
  mapper.walk(entry, loss_by_length_rows());
}

Rows callback_rows() {
  return {left_out("speed_monitor", kMetrics),
          left_out("lr_monitor", kMetrics),
          left_out("memory_monitor", kMetrics),
          left_out("runtime_estimator", kMetrics),
          left_out("scheduled_gc", "there is no garbage collector"),
          left_out("nan_monitor", "a step with NaN ends the run: r.guard"),
          left_out("oom_observer", "tycho plan and profiles show memory use"),
          left_out("env_logging", "the run folder has versions.json"),
          by("optimizer_monitor", map_optimizer_monitor),
          by("system_metrics_monitor", map_system_metrics),
          noted("activation_monitor_full_model", {},
                "t.cb.activations {} records the residual stream between layers"),
          by("loss_perp_v_len", map_loss_by_length, loss_by_length_rows()),
          noted("async_eval", {}, "tycho eval RUN --follow evaluates every checkpoint beside the run"),
          by("eval_output_logging", map_eval_outputs, eval_output_rows()),
          noted("memory_snapshot", {}, "r.profile with memory = true records memory allocations"),
          by("kill_loss_spike", map_kill_loss_spike, kill_loss_spike_rows()),
          noted("run_timeout", {}, "a run that hangs after its end is not killed"),
          noted("hf_checkpointer", {}, kByHand),
          noted("mono_checkpoint_saver", {}, kByHand),
          by("early_stopper", map_early_stopper, early_stopper_rows()),
          by("generate_callback", map_generate, generate_rows())};
}

const char* const kFromRankZero = "rank 0 writes";

Rows wandb_rows() {
  return {to("project", "project"),
          to("entity", "entity"),
          to("group", "group"),
          to("tags", "tags"),
          left_out("name", "the run name"),
          left_out("log_artifacts", "checkpoints stay in the run folder"),
          left_out("rank_zero_only", kFromRankZero),
          noted("init_kwargs", {"null", "{}"}, "not passed on: write what you need into t.log.wandb")};
}

/// Maps a W&B logger. Its name becomes the recipe's run_name, so that the run folder has it too.
void map_wandb(Mapper& mapper, const DocEntry& entry) {
  mapper.note(entry, kOfflineWandb);
  std::vector<std::string> fields = {"names = \"composer\""};
  if (mapper.is_null(entry.node.find("project"))) fields.emplace_back("project = \"uncategorized\"");
  list_component(mapper, entry, "t.log.wandb", wandb_rows(), fields);
}

void map_tensorboard(Mapper& mapper, const DocEntry& entry) {
  std::vector<std::string> fields = {"names = \"composer\""};
  if (mapper.is_null(entry.node.find("log_dir"))) fields.emplace_back("dir = \"tensorboard_logs\"");
  list_component(mapper, entry, "t.log.tensorboard",
                 {to("log_dir", "dir"), left_out("flush_interval", "records are written at once"),
                  left_out("rank_zero_only", kFromRankZero)},
                 fields);
}

Rows mlflow_rows() {
  Rows rows = {
      to("experiment_name", "experiment"),
      to("tracking_uri", "tracking_uri"),
      left_out("run_name", "the run name"),
      left_out("rank_zero_only", kFromRankZero),
      left_out("flush_interval", "records are sent once a second"),
      left_out("logging_buffer_seconds", "records are sent once a second"),
      left_out("synchronous", "a run does not wait for the server"),
      left_out("resume", "every attempt of a run continues the same run of MLflow"),
      noted("tags", {"null", "{}"}, "write them into t.log.mlflow: tags = { NAME = \"...\" }"),
      noted("run_group", {"null"}, "write it into t.log.mlflow: tags = { run_group = \"...\" }"),
      noted("log_system_metrics", {"false"}, "r.callbacks.machine = t.cb.machine_use {} records them")};
  for (const char* key : {"model_registry_prefix", "model_registry_uri"})
    rows.push_back(noted(key, {"null", ""}, "checkpoints stay in the run folder"));
  for (const char* key : {"rename_metrics", "ignore_metrics", "ignore_hyperparameters"})
    rows.push_back(noted(key, {"null", "{}", "[]"}, "all numbers keep Composer's names"));
  return rows;
}

void map_mlflow(Mapper& mapper, const DocEntry& entry) {
  std::vector<std::string> fields = {"names = \"composer\""};
  if (mapper.is_null(entry.node.find("experiment_name")))
    fields.emplace_back("experiment = \"my-mlflow-experiment\"");
  list_component(mapper, entry, "t.log.mlflow", mlflow_rows(), fields);
}

Rows logger_rows() {
  Rows rows = {by("wandb", map_wandb, wandb_rows()), by("tensorboard", map_tensorboard),
               by("mlflow", map_mlflow, mlflow_rows())};
  rows.push_back(noted("mosaicml", {}, kNoLogger));
  for (const char* key : {"inmemory", "in_memory_logger"}) rows.push_back(left_out(key, kMetrics));
  return rows;
}

void map_loggers(Mapper& mapper, const DocEntry& entry) {
  bool any = false;
  for (const char* key : {"wandb", "tensorboard", "mlflow"}) any |= entry.node.find(key) != nullptr;
  mapper.out().comments_before(entry.node.line);
  if (any) open_sinks(mapper, entry);
  mapper.walk(entry, logger_rows());
  if (any) mapper.out().close("}");
}

}  // namespace

Row foundry_callbacks_row() { return group("callbacks", callback_rows()); }

Row foundry_loggers_row() { return by("loggers", map_loggers, logger_rows()); }

}  // namespace tycho
