// Metrics and gauntlets, against LLM Foundry's EvalGauntlet and by hand.
#include "trainer/tasks/result.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/tasks/icl_golden.h"

namespace tycho {
namespace {

/// The results of LLM Foundry, as ours would be.
IclResults golden_results() {
  IclResults results;
  for (const Json& one : icl_golden("results.json")) {
    std::string name =
        fmt::format("{}/{}-shot", one.at("case").get<std::string>(), one.at("num_fewshot").get<int>());
    if (one.contains("category")) name += "/" + one.at("category").get<std::string>();
    results.tasks.push_back(
        {name, one.at("metrics").get<std::map<std::string, double>>(), one.at("items").get<int64_t>()});
  }
  return results;
}

GauntletConfig golden_gauntlet(const Json& categories, const Json& one) {
  GauntletConfig gauntlet;
  for (const auto& [name, weighting] : enum_names(GauntletWeighting{}))
    if (one.at("weighting") == name) gauntlet.weighting = weighting;
  gauntlet.subtract_random_baseline = one.at("subtract_random_baseline").get<bool>();
  gauntlet.rescale_accuracy = one.at("rescale_accuracy").get<bool>();
  gauntlet.averages = one.at("averages").get<std::map<std::string, std::vector<std::string>>>();
  for (const Json& category : categories)
    for (const Json& benchmark : category.at("benchmarks"))
      gauntlet.categories[category.at("name").get<std::string>()].push_back(
          {benchmark.at("name").get<std::string>(), benchmark.at("num_fewshot").get<int64_t>(),
           benchmark.at("random_baseline").get<double>()});
  return gauntlet;
}

TEST(IclResult, GauntletsAreThoseOfLlmFoundry) {
  const Json golden = icl_golden("gauntlet.json");
  int compared = 0;
  for (const Json& one : golden.at("cases")) {
    IclResults results = golden_results();
    add_gauntlet(golden_gauntlet(golden.at("categories"), one), results);
    EXPECT_EQ(results.left_out, std::vector<std::string>{"missing"});
    results.tasks.clear();
    const std::map<std::string, double> metrics = icl_metrics(results);
    EXPECT_EQ(metrics.size(), one.at("scores").size());
    for (const auto& [name, score] : one.at("scores").items()) {
      ASSERT_TRUE(metrics.contains(name)) << name;
      EXPECT_NEAR(metrics.at(name), score.get<double>(), 1e-12) << name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 13);
}

/// Questions with these gold choices among `choices` sequences of one token each.
IclQuestions questions(IclType type, const std::vector<int64_t>& gold, size_t choices) {
  IclQuestions asked{.name = "x/0-shot", .task = {.label = "x", .type = type, .calibration_error = true}};
  for (const int64_t one : gold)
    asked.questions.push_back({.sequences = std::vector<Continuation>(choices, {{1, 2}, 1}), .gold = one});
  return asked;
}

TEST(IclResult, TheFirstOfEquallyLikelyChoicesIsTaken) {
  const auto result =
      result_of_scores(questions(IclType::kMultipleChoice, {0, 1}, 2),
                       {{-1, false, 0.3, 0}, {-1, false, 0.3, 0}, {-2, false, 0.1, 0}, {-1, true, 0.9, 0}});
  EXPECT_EQ(result.metrics.at("InContextLearningMultipleChoiceAccuracy"), 1);
  // Half sure and right, nine tenths sure and right: |1 - 0.55| and |1 - 0.95|.
  EXPECT_DOUBLE_EQ(result.metrics.at("InContextLearningMCExpectedCalibrationError"), (0.45 + 0.05) / 2);
  EXPECT_EQ(result.items, 2);
}

TEST(IclResult, AnItemThatIsNotFiniteIsWrongAndCounted) {
  const ContinuationScore undefined{.logprob = NAN}, known{-2, false, 0.1, 0.1};
  IclResults results;
  // NaN for the right choice, for the other one, and for both of which the first is right.
  results.tasks = {
      result_of_scores(questions(IclType::kMultipleChoice, {0, 1, 0}, 2),
                       {undefined, known, undefined, known, undefined, undefined}),
      result_of_scores(questions(IclType::kLanguageModeling, {0, 0}, 1), {{-1, true, 1, 1}, undefined})};
  EXPECT_DOUBLE_EQ(results.tasks[0].metrics.at("InContextLearningMultipleChoiceAccuracy"), 1.0 / 3);
  EXPECT_EQ(results.tasks[1].metrics.at("InContextLearningLMAccuracy"), 0.5);
  for (const IclTaskResult& task : results.tasks)
    for (const auto& [name, value] : task.metrics) EXPECT_TRUE(std::isfinite(value)) << name;
  EXPECT_EQ(results.tasks[0].not_finite, 3);
  const std::vector<std::string> warnings = not_finite_items(results);
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_TRUE(warnings[1].starts_with("1 of 2 items of x/0-shot have a log-likelihood that is not finite"))
      << warnings[1];
  EXPECT_EQ(icl_json(results).at("items_not_finite").at("x/0-shot"), 1);
}

TEST(IclResult, ALongAnswerIsNotWorseForItsLength) {
  IclQuestions asked = questions(IclType::kSchema, {1}, 2);
  asked.questions[0].sequences[1] = {{1, 2, 3, 4}, 3};
  EXPECT_EQ(result_of_scores(asked, {{-1, false, 0.3, 0}, {-2.4, false, 0.2, 0}})
                .metrics.at("InContextLearningMultipleChoiceAccuracy"),
            1);
}

TEST(IclResult, AContinuationIsRightWhenEveryTokenIsTheLikeliest) {
  const auto result =
      result_of_scores(questions(IclType::kLanguageModeling, {0, 0, 0, 0}, 1),
                       {{-1, true, 1, 1}, {-1, false, 1, 0.2}, {-1, true, 1, 0.99}, {-9, false, 0, 0.21}});
  EXPECT_EQ(result.metrics.at("InContextLearningLMAccuracy"), 0.5);
  EXPECT_DOUBLE_EQ(result.metrics.at("InContextLearningLMExpectedCalibrationError"), 0.5 * 0.05 + 0.5 * 0.25);
}

TEST(IclResult, SaysWhichCategoriesAreLeftOut) {
  IclResults results = golden_results();
  results.tasks.resize(1);
  add_gauntlet({.categories = {{"near", {{"words", 0, 0.0}}}, {"far", {{"words", 1, 0.0}}}}}, results);
  EXPECT_EQ(
      icl_summary(results),
      "words/0-shot 0.5000, default_average 0.5000, near 0.5000; categories left out, since not all of their "
      "benchmarks are tasks: far");
  EXPECT_EQ(icl_json(results).at("left_out"), Json({"far"}));
}

}  // namespace
}  // namespace tycho
