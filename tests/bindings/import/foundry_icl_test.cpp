// LLM Foundry's icl_tasks and eval_gauntlet: what becomes of them, and what cannot be taken.
#include <gtest/gtest.h>

#include "bindings/import/import.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

/// The recipe of a run with these lines, or what was wrong.
std::string recipe_with(const std::string& lines) {
  const std::string text = "max_duration: 10ba\ntrain_loader: {name: text, dataset: {local: x}}\n" + lines;
  try {
    return import_recipe("x.yaml", text, {}).lua;
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(FoundryIcl, MapsTasksAndTheGauntlet) {
  const std::string text = recipe_with(
      "max_seq_len: 2048\neval_interval: 500ba\neval_first: true\nicl_tasks:\n- label: lambada  # words\n  "
      "dataset_uri: "
      "eval/lambada.jsonl\n  num_fewshot: [0, 5]\n  icl_task_type: language_modeling\n  "
      "continuation_delimiter: \" \"\n"
      "  metric_names: [InContextLearningLMAccuracy, InContextLearningLMExpectedCalibrationError]\n"
      "- {label: gsm8k, dataset_uri: g.jsonl, num_fewshot: [8], icl_task_type: generation_task_with_answers, "
      "cot_delimiter: '#### ', question_prelimiter: 'Question: ', max_seq_len: 1024, batch_size: 4}\n"
      "eval_gauntlet:\n  weighting: EQUAL\n  rescale_accuracy: true\n  averages:\n    core: [language]\n  "
      "categories:\n"
      "  - name: language\n    benchmarks:\n    - name: lambada\n      num_fewshot: 0\n      "
      "random_baseline: 0.0\n"
      "    - {name: gsm8k, num_fewshot: 8, random_baseline: 0.25}\n");
  for (const char* part :
       {"r.icl.tasks[1] = {", "label = \"lambada\"", "path = \"eval/lambada.jsonl\"",
        "num_fewshot = { 0, 5 }", "type = \"language_modeling\"", "calibration_error = true",
        "max_seq_len = 2048", "r.icl.tasks[2] = {", "question_prelude = \"Question: \"", "max_seq_len = 1024",
        "r.icl.every = \"500ba\"", "r.icl.first = true", "r.icl.gauntlet.weighting = \"EQUAL\"",
        "r.icl.gauntlet.averages[\"core\"] = { \"language\" }",
        "r.icl.gauntlet.categories[\"language\"] = { { name = \"lambada\", num_fewshot = 0, random_baseline "
        "= 0.0 }, { name "
        "= \"gsm8k\", num_fewshot = 8, random_baseline = 0.25 } }"})
    EXPECT_CONTAINS(text, part);
  const std::string published = recipe_with(
      "eval_gauntlet: {averages: {core: [a, programming], lite: [a_lite]}, categories: [{name: a, "
      "benchmarks: "
      "[{name: b, num_fewshot: 0, random_baseline: 0}]}]}\n");
  EXPECT_CONTAINS(published, "r.icl.gauntlet.averages[\"core\"] = { \"a\" }");
  EXPECT_CONTAINS(published, "eval_gauntlet.averages.lite: [a_lite]  (none of its categories is there)");
  EXPECT_EQ(published.find("averages[\"lite\"]"), std::string::npos);
  EXPECT_CONTAINS(recipe_with("icl_tasks: eval/yamls/tasks.yaml\n"),
                  "copy the list icl_tasks of that file here");
  EXPECT_CONTAINS(recipe_with("icl_tasks: [{label: a, dataset_uri: 's3://x/a.jsonl'}]\n"),
                  "expected a .jsonl on this machine");
  EXPECT_CONTAINS(recipe_with("icl_tasks: [{label: a, icl_task_type: code_evaluation}]\n"),
                  "Tycho has language_modeling, multiple_choice");
  EXPECT_CONTAINS(recipe_with("icl_tasks: [{label: a, metric_names: [Other]}]\n"), "Other is not measured");
  EXPECT_CONTAINS(recipe_with("eval_gauntlet: {categories: [{name: a, benchmarks: [{name: b}]}]}\n"),
                  "expected num_fewshot");
}

}  // namespace
}  // namespace tycho
