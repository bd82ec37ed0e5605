// A tiny Llama on LLM Foundry's tasks: its metrics, log-likelihoods and texts against LLM Foundry and
// transformers.
#include "trainer/icl/icl_evaluator.h"

#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/icl/icl_golden.h"
#include "trainer/convert/hf_import.h"
#include "trainer/icl/greedy_writer.h"
#include "trainer/run/icl_checkpoint.h"
#include "trainer/run/trained_model.h"

namespace tycho {
namespace {

class IclEvaluatorTest : public testing::Test {
 protected:
  IclEvaluatorTest() { import_hf(real_files(), kIclGoldens + "/model", dir_ / "model"); }

  CheckpointReader checkpoint() const { return CheckpointReader(find_checkpoint(dir_ / "model")); }
  IclResults measure(const IclConfig& config) {
    return measure_icl(checkpoint(), config, at::kCPU, stop_).value();
  }
  /// The task of a case and a number of examples, with the calibration error where there is one.
  static IclTaskConfig task_of(const Json& result) {
    const auto number = [](const Json& one) { return one.at("num_fewshot").get<int64_t>(); };
    const bool parted = result.contains("category");
    static const Json prompts = icl_golden("prompts.json");
    for (const Json& entry : prompts) {
      if (entry.at("case") != (parted ? Json("colours") : result.at("case")) ||
          number(entry) != number(result))
        continue;
      IclTaskConfig task = golden_task(entry);
      task.has_categories = parted;
      task.calibration_error = task.type != IclType::kGeneration;
      return task;
    }
    ADD_FAILURE() << "no prompts of " << result.at("case");
    return {};
  }

  const c10::InferenceMode no_autograd_;
  TempDir dir_;
  std::atomic<int> stop_ = 0;
};

TEST_F(IclEvaluatorTest, MetricsAreThoseOfLlmFoundry) {
  int compared = 0;
  for (const Json& expected : icl_golden("results.json")) {
    const IclResults results = measure({.tasks = {task_of(expected)}});
    const std::string category = expected.value("category", "");
    for (const IclTaskResult& task : results.tasks) {
      if (!task.name.ends_with("/" + category) && !category.empty()) continue;
      EXPECT_EQ(task.items, expected.at("items").get<int64_t>());
      EXPECT_EQ(task.metrics.size(), expected.at("metrics").size());
      for (const auto& [name, value] : expected.at("metrics").items())
        EXPECT_NEAR(task.metrics.at(name), value.get<double>(), 1e-6) << task.name << " " << name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 18);
}

TEST_F(IclEvaluatorTest, LogLikelihoodsAreThoseOfTransformers) {
  TrainedModel trained(checkpoint(), at::kCPU);
  size_t compared = 0;
  for (const Json& expected : icl_golden("results.json")) {
    if (!expected.contains("loglikelihoods") || expected.contains("category")) continue;
    std::vector<Continuation> sequences;
    for (const IclQuestions& asked :
         icl_questions(task_of(expected), *trained.tokenizer(), trained.vocab_size(), 96))
      for (const IclQuestion& question : asked.questions)
        sequences.insert(sequences.end(), question.sequences.begin(), question.sequences.end());
    const auto scores = score(trained.asked(), sequences, stop_).value();
    ASSERT_EQ(scores.size(), expected["loglikelihoods"].size());
    for (size_t i = 0; i < scores.size(); ++i, ++compared) {
      const double wanted = expected["loglikelihoods"][i].get<double>();
      EXPECT_NEAR(scores[i].logprob, wanted, 1e-5 * std::max(1.0, -wanted)) << expected.at("case");
    }
  }
  EXPECT_GT(compared, 500u);
}

TEST_F(IclEvaluatorTest, WritesWhatTransformersWrites) {
  TrainedModel trained(checkpoint(), at::kCPU);
  size_t compared = 0;
  for (const Json& expected : icl_golden("results.json")) {
    if (!expected.contains("texts")) continue;
    const auto asked = icl_questions(task_of(expected), *trained.tokenizer(), trained.vocab_size(), 96);
    std::vector<std::vector<int32_t>> prompts;
    for (const IclQuestion& question : asked.at(0).questions) prompts.push_back(question.prompt);
    const auto written = write_greedily(
        trained.asked(), prompts, asked[0].max_new_tokens, [](const auto& ids) { return ids.back() == 0; },
        stop_);
    for (size_t i = 0; i < prompts.size(); ++i, ++compared) {
      std::vector<int32_t> ids = written.value().at(i);
      if (ids.back() == 0) ids.pop_back();
      EXPECT_EQ(trained.tokenizer()->decode(ids), expected["texts"][i].get<std::string>())
          << expected.at("case");
    }
  }
  EXPECT_EQ(compared, 4u * 14);
}

TEST_F(IclEvaluatorTest, AStopEndsItWithoutResults) {
  stop_ = 15;
  for (const Json& expected : icl_golden("results.json")) {
    if (expected.at("num_fewshot") != 0) continue;
    EXPECT_FALSE(measure_icl(checkpoint(), {.tasks = {task_of(expected)}}, at::kCPU, stop_).has_value());
  }
}

}  // namespace
}  // namespace tycho
