// Configuration of in-context evaluation: tasks as LLM Foundry has them, and the gauntlet that sums them up.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/base/duration.h"
#include "trainer/base/fields.h"

namespace tycho {

enum class IclType { kLanguageModeling, kMultipleChoice, kSchema, kGeneration };
constexpr EnumNames<IclType, 4> enum_names(IclType) {
  return {{{"language_modeling", IclType::kLanguageModeling},
           {"multiple_choice", IclType::kMultipleChoice},
           {"schema", IclType::kSchema},
           {"generation_task_with_answers", IclType::kGeneration}}};
}

struct IclTaskConfig {
  std::string label, path;
  IclType type = IclType::kLanguageModeling;
  std::vector<int64_t> num_fewshot = {0};
  std::string prompt_string, example_delimiter = "\n", continuation_delimiter = " ", question_prelude;
  bool has_categories = false;
  int64_t fewshot_random_seed = 1234;
  std::optional<int64_t> max_seq_len;
  bool calibration_error = false;
  std::string cot_delimiter;
  std::vector<std::string> early_stopping_criteria;
  bool do_normalization = true;

  template <class Visitor>
  void fields(Visitor& v) {
    v("label", label, "Name of the task in metrics and in the gauntlet.", required);
    v("path", path, "Its items: a .jsonl with one object per line.", required);
    v("type", type,
      "language_modeling: context, continuation. multiple_choice: query, choices, gold. schema: "
      "context_options, continuation, gold. generation_task_with_answers: context, answer, aliases.",
      required);
    v("num_fewshot", num_fewshot, "Examples shown before each item; each number is measured.", at_least(0));
    v("prompt_string", prompt_string, "Text before the examples.");
    v("example_delimiter", example_delimiter, "Text between examples.");
    v("continuation_delimiter", continuation_delimiter, "Text between a context and its answer.");
    v("question_prelude", question_prelude,
      "Text before each context; LLM Foundry calls it question_prelimiter or prelimiter.");
    v("has_categories", has_categories, "Measure the items of each \"category\" by themselves.");
    v("fewshot_random_seed", fewshot_random_seed, "Another seed shows other examples.", at_least(0));
    v("max_seq_len", max_seq_len, "Tokens of a prompt with its answer. Default: the model's longest.",
      positive);
    v("calibration_error", calibration_error, "Measure the expected calibration error too.");
    v("cot_delimiter", cot_delimiter, "Generation: the answer follows this text, after a chain of thought.");
    v("early_stopping_criteria", early_stopping_criteria, "Generation: the answer ends before these texts.");
    v("do_normalization", do_normalization,
      "Generation: compare without case, punctuation, articles and white space.");
  }
};

enum class GauntletWeighting { kEqual, kSampleSize, kLogSampleSize };
constexpr EnumNames<GauntletWeighting, 3> enum_names(GauntletWeighting) {
  return {{{"EQUAL", GauntletWeighting::kEqual},
           {"SAMPLE_SZ", GauntletWeighting::kSampleSize},
           {"LOG_SAMPLE_SZ", GauntletWeighting::kLogSampleSize}}};
}

struct GauntletBenchmark {
  std::string name;
  int64_t num_fewshot = 0;
  double random_baseline = 0;
  template <class Visitor>
  void fields(Visitor& v) {
    v("name", name, "Label of a task.", required);
    v("num_fewshot", num_fewshot, "Which of its numbers of examples counts.", at_least(0));
    v("random_baseline", random_baseline, "Accuracy of guessing.", below(0, 1));
  }
};

struct GauntletConfig {
  GauntletWeighting weighting = GauntletWeighting::kEqual;
  bool subtract_random_baseline = true, rescale_accuracy = true;
  std::map<std::string, std::vector<GauntletBenchmark>> categories;
  std::map<std::string, std::vector<std::string>> averages;
  template <class Visitor>
  void fields(Visitor& v) {
    v("weighting", weighting,
      "Weight of a benchmark in its category: the same for all, its number of items, or the logarithm of "
      "that.");
    v("subtract_random_baseline", subtract_random_baseline, "Count only what is above guessing.");
    v("rescale_accuracy", rescale_accuracy, "Scale what is above guessing so that 1 is perfect.");
    v("categories", categories, "Benchmarks by category; the score of a category is their weighted mean.");
    v("averages", averages, "Means of categories, by name. Default: default_average, of all.");
  }
};

struct IclConfig {
  std::optional<Duration> every;
  bool first = false;
  std::vector<IclTaskConfig> tasks;
  GauntletConfig gauntlet;
  bool outputs = false;
  template <class Visitor>
  void fields(Visitor& v) {
    v("every", every,
      "Measure whenever this much training is done, and at the end. Default: only at the end.",
      units("ba tok sp ep dur"), positive);
    v("first", first, "Measure before the first step too.");
    v("tasks", tasks, "What to measure. None: nothing.");
    v("gauntlet", gauntlet, "Scores over several tasks.");
    v("outputs", outputs,
      "Record every item, too: prompt, answer, and what the model chose or wrote, in icl_outputs.jsonl in "
      "the "
      "run folder, and the first ones of each task as a table in TensorBoard.");
  }
};

/// Reports problems of tasks and the gauntlet. `place` is the key of the config, such as "icl"; "" for a
/// separate file.
void check(const IclConfig& icl, const std::string& place, ConfigProblems& problems);

}  // namespace tycho
