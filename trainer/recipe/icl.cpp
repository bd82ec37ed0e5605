// The rules between the keys of in-context evaluation.
#include "trainer/recipe/icl.h"

#include <set>

#include "trainer/base/nearest.h"

namespace tycho {
namespace {

void check_task(const IclTaskConfig& task, const std::string& path, ConfigProblems& problems) {
  if (task.label.empty() || task.label.find('/') != std::string::npos)
    problems.add(path + ".label", "\"{}\" cannot be part of a metric's name: write a name without \"/\"",
                 task.label);
  if (task.path.empty()) problems.add(path + ".path", "is empty: name a .jsonl with the items of the task");
  if (task.num_fewshot.empty())
    problems.add(path + ".num_fewshot", "is empty: write {{ 0 }} to show no examples");
  const bool generates = task.type == IclType::kGeneration;
  const char* const otherwise = "unless type is generation_task_with_answers";
  problems.idle(path + ".cot_delimiter", !task.cot_delimiter.empty(), generates, otherwise);
  problems.idle(path + ".early_stopping_criteria", !task.early_stopping_criteria.empty(), generates,
                otherwise);
  problems.idle(path + ".do_normalization", !task.do_normalization, generates, otherwise);
  problems.idle(path + ".calibration_error", task.calibration_error, !generates,
                "with type = \"generation_task_with_answers\"");
  for (const std::string& text : task.early_stopping_criteria)
    if (text.empty())
      problems.add(path + ".early_stopping_criteria", "has an empty text, which ends every answer");
}

void check_gauntlet(const GauntletConfig& gauntlet, const std::string& path, ConfigProblems& problems) {
  if (gauntlet.rescale_accuracy && !gauntlet.subtract_random_baseline)
    problems.add(path + ".rescale_accuracy",
                 "scales what subtract_random_baseline leaves; set rescale_accuracy = false or "
                 "subtract_random_baseline = true");
  std::vector<std::string> known;
  for (const auto& [name, benchmarks] : gauntlet.categories) {
    known.push_back(name);
    if (benchmarks.empty()) problems.add(path + ".categories." + name, "has no benchmarks; remove it");
  }
  for (const auto& [name, categories] : gauntlet.averages) {
    if (gauntlet.categories.contains(name))
      problems.add(path + ".averages." + name, "is the name of a category too; choose another one");
    for (const std::string& category : categories)
      if (!gauntlet.categories.contains(category))
        problems.add(path + ".averages." + name, "\"{}\" is not a category{}", category,
                     did_you_mean(category, known));
  }
}

}  // namespace

void check(const IclConfig& icl, const std::string& place, ConfigProblems& problems) {
  const std::string path = place.empty() ? "" : place + ".";
  if (icl.tasks.empty()) {
    problems.idle(path + "every", icl.every.has_value(), false, "without tasks");
    problems.idle(path + "first", icl.first, false, "without tasks");
    problems.idle(path + "gauntlet.categories", !icl.gauntlet.categories.empty(), false, "without tasks");
  }
  std::set<std::string> labels;
  for (size_t i = 0; i < icl.tasks.size(); ++i) {
    const std::string task = fmt::format("{}tasks[{}]", path, i + 1);
    check_task(icl.tasks[i], task, problems);
    if (!labels.insert(icl.tasks[i].label).second)
      problems.add(task + ".label", "\"{}\" is the label of two tasks; rename one", icl.tasks[i].label);
  }
  check_gauntlet(icl.gauntlet, path + "gauntlet", problems);
}

}  // namespace tycho
