// Loggers and callbacks of LLM Foundry that keep their rules here.
#include <gtest/gtest.h>

#include <string>

#include "bindings/import/import.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

/// The recipe of a YAML with these lines and the notes below it, or what was wrong.
std::string recipe_of(const std::string& lines) {
  try {
    const Imported made = import_recipe(
        "x.yaml", "max_duration: 10ba\ntrain_loader: {name: text, dataset: {local: x}}\n" + lines, {});
    std::string out = made.lua;
    for (const std::string& note : made.notes) out += note + "\n";
    return out;
  } catch (const Error& error) {
    return error.what();
  }
}

void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
}

TEST(FoundryCallbacks, EarlyStopAndGenerate) {
  const std::string evaluated = "eval_loader: {name: text, dataset: {local: v}}\neval_interval: 50ba\n";
  expect_contains(
      recipe_of(evaluated + "callbacks: {early_stopper: {monitor: LanguageCrossEntropy, comp: less, "
                            "dataloader_label: eval, min_delta: 0.01, patience: 120ba}}\n"),
      "r.callbacks.early_stopper = t.cb.early_stop {\n  metric = \"eval.loss\",\n"
      "  min_delta = 0.01,\n  patience = 3,\n}");
  expect_contains(
      recipe_of(evaluated + "callbacks: {early_stopper: {monitor: LanguageCrossEntropy, patience: 120ba}}\n"),
      "add comp: less");
  expect_contains(
      recipe_of(evaluated + "callbacks: {early_stopper: {monitor: Accuracy, comp: less, patience: 1ba}}\n"),
      "evaluations measure LanguageCrossEntropy");
  expect_contains(
      recipe_of(evaluated + "callbacks: {early_stopper: {monitor: LanguagePerplexity, patience: 2}}\n"),
      "in the same unit as eval_interval = 50ba");
  expect_contains(
      recipe_of("callbacks: {generate_callback: {prompts: [Once, Twice], interval: 500ba, max_new_tokens: 8, "
                "do_sample: true, temperature: 0.7}}\n"),
      "r.callbacks.generate_callback = t.cb.generate {\n  prompts = { \"Once\", \"Twice\" },\n"
      "  every = \"500ba\",\n  max_tokens = 8,\n  -- do_sample: true  (by temperature)\n"
      "  temperature = 0.7,\n}");
  expect_contains(recipe_of("callbacks: {generate_callback: {prompts: [a], interval: 1ba, top_p: 0.9}}\n"),
                  "callbacks.generate_callback.top_p: all tokens can be drawn here");
}

TEST(FoundryCallbacks, MlflowKeepsItsServerAndExperiment) {
  const std::string made = recipe_of(
      "loggers: {mlflow: {experiment_name: words, tracking_uri: \"http://tracker:5000\", resume: true, "
      "tags: {a: b}, rename_metrics: {x: y}}}\n");
  for (const char* part : {"experiment = \"words\",", "tracking_uri = \"http://tracker:5000\",",
                           "names = \"composer\",", "loggers.mlflow.tags: write them into t.log.mlflow",
                           "loggers.mlflow.rename_metrics: all numbers keep"})
    expect_contains(made, part);
  expect_contains(recipe_of("loggers: {mlflow: {experiment: e}}\n"), "did you mean \"experiment_name\"");
}

TEST(FoundryCallbacks, KillLossSpikeKeepsItsRule) {
  const std::string made = recipe_of(
      "callbacks: {kill_loss_spike: {log_only: false, patience: 2, window_size: 50, outlier_multiplier: 3, "
      "loss_cap: 8}, system_metrics_monitor: {}}\n");
  for (const char* part : {"t.cb.kill_loss_spike {", "action = \"stop\"", "patience = 2", "window = 50",
                           "outlier_multiplier = 3", "loss_cap = 8", "t.cb.machine_use {"})
    expect_contains(made, part);
  expect_contains(recipe_of("callbacks: {kill_loss_spike: {log_only: true}}\n"), "action = \"warn\"");
}

TEST(FoundryCallbacks, TheOptimizerMonitorKeepsItsInterval) {
  const std::string made =
      recipe_of("callbacks: {optimizer_monitor: {batch_log_interval: 25, log_optimizer_metrics: true}}\n");
  expect_contains(made, "t.cb.optimizer_monitor {");
  expect_contains(made, "every = \"25ba\"");
  expect_contains(recipe_of("callbacks: {optimizer_monitor: {}}\n"), "t.cb.optimizer_monitor {");
}

TEST(FoundryCallbacks, EvalOutputLoggingRecordsOutputsOfTasks) {
  const std::string made = recipe_of("callbacks: {eval_output_logging: {log_tokens: false}}\n");
  expect_contains(made, "icl.outputs = true");
  expect_contains(made, "callbacks.eval_output_logging.log_tokens: false  (texts are recorded, not tokens)");
}

TEST(FoundryCallbacks, LossesByLengthAreRecordedAtTheInterval) {
  const std::string made = recipe_of(
      "callbacks: {loss_perp_v_len: {log_batch_interval: 50, compute_batch_interval: 25, ignore_index: "
      "-100}}\n");
  for (const char* part :
       {"log.loss_by_position = \"25ba\"", "callbacks.loss_perp_v_len: means are those of one batch",
        "log_batch_interval: 50  (a table is recorded as soon as it is computed)"})
    expect_contains(made, part);
  expect_contains(recipe_of("callbacks: {loss_perp_v_len: {log_batch_interval: 50}}\n"),
                  "expected compute_batch_interval");
  expect_contains(recipe_of("callbacks: {loss_perp_v_len: {log_batch_interval: 50, compute_batch_interval: "
                            "25, ignore_index: 0}}\n"),
                  "tokens without a target are -100 here");
}

}  // namespace
}  // namespace tycho
