// Accuracies, calibration errors (Guo et al. 2017, arXiv:1706.04599), and their weighted means.
#include "trainer/tasks/result.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "trainer/tasks/answers.h"

namespace tycho {
namespace {

constexpr const char* kLmAccuracy = "InContextLearningLMAccuracy";
constexpr const char* kChoiceAccuracy = "InContextLearningMultipleChoiceAccuracy";
constexpr const char* kMatchAccuracy = "InContextLearningGenerationExactMatchAccuracy";
constexpr const char* kLmCalibration = "InContextLearningLMExpectedCalibrationError";
constexpr const char* kChoiceCalibration = "InContextLearningMCExpectedCalibrationError";

/// Compares a model's confidence with its share of right answers, in ten classes of confidence.
class Calibration {
 public:
  void add(double confidence, bool right) {
    const auto bucket = std::min<size_t>(buckets_.size() - 1, static_cast<size_t>(confidence * 10));
    ++buckets_[bucket].total;
    buckets_[bucket].right += right;
    ++total_;
  }
  /// Returns the mean distance between a class's middle and its share of right answers.
  double error() const {
    double error = 0;
    for (size_t i = 0; i < buckets_.size(); ++i) {
      const auto [total, right] = buckets_[i];
      if (total == 0) continue;
      const double middle = (static_cast<double>(i) + 0.5) / static_cast<double>(buckets_.size());
      error += total / total_ * std::abs(right / total - middle);
    }
    return error;
  }

 private:
  struct Bucket {
    double total = 0, right = 0;
  };
  std::array<Bucket, 10> buckets_;
  double total_ = 0;
};

/// The judgement of one question from the scores of its sequences.
struct Judged {
  bool right = false, confidently_right = false;  // by mean log-likelihood, and by mean probability
  double confidence = 0;
};

int64_t best_of(std::vector<double> values) {
  for (double& value : values)
    if (std::isnan(value)) value = -INFINITY;
  return std::max_element(values.begin(), values.end()) - values.begin();
}

Judged judge_choice(const IclQuestion& question, const ContinuationScore* scores) {
  std::vector<double> probabilities;
  double sum = 0;
  for (size_t i = 0; i < question.sequences.size(); ++i) {
    probabilities.push_back(scores[i].mean_probability);
    sum += scores[i].mean_probability;
  }
  const int64_t surest = best_of(probabilities);
  return {is_right_choice(question, scores), surest == question.gold && sum > 0,
          sum > 0 ? probabilities[static_cast<size_t>(surest)] / sum : 0};
}

/// The accuracy of a benchmark, "LABEL/5-shot", and its number of items; categories of a task have equal
/// weight.
struct BenchmarkFigures {
  double accuracy_sum = 0, parts = 0;
  int64_t items = 0;
};

std::map<std::string, BenchmarkFigures> benchmarks_of(const std::vector<IclTaskResult>& tasks) {
  std::map<std::string, BenchmarkFigures> all;
  for (const IclTaskResult& task : tasks) {
    const size_t shots = task.name.find('/') + 1;
    BenchmarkFigures& figures = all[task.name.substr(0, task.name.find('/', shots))];
    figures.items += task.items;
    figures.parts += 1;
    for (const char* accuracy : {kLmAccuracy, kChoiceAccuracy, kMatchAccuracy})
      if (const auto found = task.metrics.find(accuracy); found != task.metrics.end())
        figures.accuracy_sum += found->second;
  }
  return all;
}

double weight_of(GauntletWeighting weighting, int64_t items) {
  switch (weighting) {
    case GauntletWeighting::kEqual: return 1;
    case GauntletWeighting::kSampleSize: return static_cast<double>(items);
    case GauntletWeighting::kLogSampleSize: return std::max(std::log2(static_cast<double>(items)), 1.0);
  }
  return 1;
}

double above_guessing(const GauntletConfig& gauntlet, double accuracy, double baseline) {
  if (!gauntlet.subtract_random_baseline) return accuracy;
  return gauntlet.rescale_accuracy ? (accuracy - baseline) / (1 - baseline) : accuracy - baseline;
}

}  // namespace

int64_t chosen_by(const IclQuestion& question, const ContinuationScore* scores) {
  std::vector<double> mean_logprobs;
  for (size_t i = 0; i < question.sequences.size(); ++i)
    mean_logprobs.push_back(scores[i].logprob / static_cast<double>(question.sequences[i].num_asked));
  return best_of(mean_logprobs);
}

bool is_right_choice(const IclQuestion& question, const ContinuationScore* scores) {
  const int64_t chosen = chosen_by(question, scores);
  return chosen == question.gold && !std::isnan(scores[chosen].logprob);
}

IclTaskResult result_of_scores(const IclQuestions& asked, const std::vector<ContinuationScore>& scores) {
  const bool chooses = asked.task.type != IclType::kLanguageModeling;
  double right = 0;
  Calibration calibration;
  IclTaskResult result{
      .name = asked.name, .metrics = {}, .items = std::ssize(asked.questions), .outputs = {}};
  const ContinuationScore* at = scores.data();
  for (const IclQuestion& question : asked.questions) {
    const Judged judged = chooses ? judge_choice(question, at)
                                  : Judged{at->is_greedy, at->is_greedy, at->least_top_probability};
    right += judged.right;
    calibration.add(judged.confidence, judged.confidently_right);
    const ContinuationScore* const end = at + question.sequences.size();
    result.not_finite += std::any_of(at, end, [](const auto& one) { return !std::isfinite(one.logprob); });
    at = end;
  }
  result.metrics[chooses ? kChoiceAccuracy : kLmAccuracy] = right / static_cast<double>(result.items);
  if (asked.task.calibration_error)
    result.metrics[chooses ? kChoiceCalibration : kLmCalibration] = calibration.error();
  return result;
}

IclTaskResult result_of_texts(const IclQuestions& asked, const std::vector<std::string>& texts) {
  double right = 0;
  for (size_t i = 0; i < texts.size(); ++i)
    right += is_right(asked.task, texts[i], asked.questions[i].answers);
  const int64_t items = std::ssize(texts);
  return {.name = asked.name,
          .metrics = {{kMatchAccuracy, right / static_cast<double>(items)}},
          .items = items,
          .outputs = {}};
}

void add_gauntlet(const GauntletConfig& gauntlet, IclResults& results) {
  if (gauntlet.categories.empty()) return;
  const std::map<std::string, BenchmarkFigures> measured = benchmarks_of(results.tasks);
  std::map<std::string, double> scores;
  for (const auto& [category, benchmarks] : gauntlet.categories) {
    double sum = 0, weights = 0;
    bool complete = true;
    for (const GauntletBenchmark& benchmark : benchmarks) {
      const auto found = measured.find(fmt::format("{}/{}-shot", benchmark.name, benchmark.num_fewshot));
      complete = complete && found != measured.end();
      if (!complete) break;
      const auto& [accuracy_sum, parts, items] = found->second;
      const double weight = weight_of(gauntlet.weighting, items);
      sum += weight * above_guessing(gauntlet, accuracy_sum / parts, benchmark.random_baseline);
      weights += weight;
    }
    if (complete)
      scores[category] = sum / weights;
    else
      results.left_out.push_back(category);
  }
  std::map<std::string, std::vector<std::string>> averages = gauntlet.averages;
  if (averages.empty())
    for (const auto& [category, benchmarks] : gauntlet.categories)
      averages["default_average"].push_back(category);
  results.gauntlet = scores;
  for (const auto& [name, categories] : averages) {
    double sum = 0, count = 0;
    for (const std::string& category : categories)
      if (const auto found = scores.find(category); found != scores.end()) sum += found->second, count += 1;
    results.gauntlet[name] = count > 0 ? sum / count : 0;
  }
}

std::map<std::string, double> icl_metrics(const IclResults& results) {
  std::map<std::string, double> all;
  for (const IclTaskResult& task : results.tasks)
    for (const auto& [metric, value] : task.metrics) all["metrics/" + task.name + "/" + metric] = value;
  for (const auto& [name, score] : results.gauntlet) all["icl/metrics/eval_gauntlet/" + name] = score;
  return all;
}

Json icl_json(const IclResults& results) {
  Json json = {{"metrics", Json::object()}, {"items", Json::object()}};
  for (const auto& [name, value] : icl_metrics(results)) json["metrics"][name] = value;
  for (const IclTaskResult& task : results.tasks) json["items"][task.name] = task.items;
  for (const IclTaskResult& task : results.tasks)
    if (task.not_finite > 0) json["items_not_finite"][task.name] = task.not_finite;
  if (!results.left_out.empty()) json["left_out"] = results.left_out;
  json["seconds"] = results.seconds;
  return json;
}

std::vector<std::string> not_finite_items(const IclResults& results) {
  std::vector<std::string> warnings;
  for (const IclTaskResult& task : results.tasks)
    if (task.not_finite > 0)
      warnings.push_back(
          fmt::format("{} of {} items of {} have a log-likelihood that is not finite, and count as wrong: "
                      "look for unusual "
                      "tokens in them, and for weights that have grown very large",
                      task.not_finite, task.items, task.name));
  return warnings;
}

std::string icl_summary(const IclResults& results) {
  std::string text;
  const auto add = [&](const std::string& name, double value) {
    text += fmt::format("{}{} {:.4f}", text.empty() ? "" : ", ", name, value);
  };
  for (const IclTaskResult& task : results.tasks)
    for (const auto& [metric, value] : task.metrics)
      if (metric.ends_with("Accuracy")) add(task.name, value);
  for (const auto& [name, score] : results.gauntlet) add(name, score);
  if (!results.left_out.empty())
    text += fmt::format("; categories left out, since not all of their benchmarks are tasks: {}",
                        fmt::join(results.left_out, ", "));
  return text;
}

}  // namespace tycho
