// Results of in-context evaluation: metrics of tasks, under LLM Foundry's names, and the gauntlet's scores.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/recipe/icl.h"
#include "trainer/tasks/continuation.h"
#include "trainer/tasks/prompts.h"

namespace tycho {

struct IclTaskResult {
  std::string name;                       // "LABEL/5-shot", "LABEL/5-shot/CATEGORY"
  std::map<std::string, double> metrics;  // "InContextLearningLMAccuracy"
  int64_t items = 0;
  std::vector<Json> outputs;  // one per item, if requested (outputs.h)
  int64_t not_finite = 0;     // items with a log-likelihood that is not finite
};

struct IclResults {
  std::vector<IclTaskResult> tasks;
  std::map<std::string, double> gauntlet;  // by category and average
  std::vector<std::string> left_out;       // categories with a benchmark that was not measured
  double seconds = 0;
};

/// Returns the choice with the highest mean log-likelihood of its tokens, the first of equals. `scores` are
/// those of the question's sequences. NaN is less likely than every number.
int64_t chosen_by(const IclQuestion& question, const ContinuationScore* scores);
/// Returns true when that choice is the right one. A choice whose log-likelihood is NaN is never right.
bool is_right_choice(const IclQuestion& question, const ContinuationScore* scores);

/// Returns the result of every type but generation from the `scores` of all sequences, question after
/// question. A choice is made by the highest mean log-likelihood of its tokens; the first of equals.
IclTaskResult result_of_scores(const IclQuestions& asked, const std::vector<ContinuationScore>& scores);
/// Returns the result of generation from the text written for each question.
IclTaskResult result_of_texts(const IclQuestions& asked, const std::vector<std::string>& texts);

/// Adds the gauntlet's scores to the results of tasks; does nothing without categories.
void add_gauntlet(const GauntletConfig& gauntlet, IclResults& results);

/// Returns every number under LLM Foundry's name: "metrics/LABEL/5-shot/InContextLearningLMAccuracy",
/// "icl/metrics/eval_gauntlet/NAME".
std::map<std::string, double> icl_metrics(const IclResults& results);
/// Returns {metrics, items, items_not_finite, left_out, seconds}.
Json icl_json(const IclResults& results);
/// Returns a warning for each task with items whose log-likelihood is not finite, which count as wrong.
std::vector<std::string> not_finite_items(const IclResults& results);
/// Returns the accuracy of each task and the gauntlet's scores, in a few words.
std::string icl_summary(const IclResults& results);

}  // namespace tycho
