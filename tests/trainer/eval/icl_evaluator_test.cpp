// A tiny Llama on LLM Foundry's tasks: its metrics, log-likelihoods and texts against LLM Foundry and
// transformers.
#include "trainer/eval/icl_evaluator.h"

#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/tasks/icl_golden.h"
#include "trainer/eval/greedy_writer.h"
#include "trainer/huggingface/hf_import.h"
#include "trainer/run/evaluate_checkpoint.h"
#include "trainer/run/trained_model.h"
#include "trainer/tasks/outputs.h"

namespace tycho {
namespace {

class IclEvaluatorTest : public testing::Test {
 protected:
  IclEvaluatorTest() { import_hf(real_files(), kIclGoldens + "/model", dir_ / "model"); }

  TrainedSource checkpoint() const { return TrainedSource(dir_ / "model"); }
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

TEST_F(IclEvaluatorTest, RecordsWhatItAskedAndWhatWasAnswered) {
  size_t compared = 0;
  for (const Json& expected : icl_golden("results.json")) {
    if (expected.contains("category")) continue;
    const IclTaskConfig task = task_of(expected);
    const IclTaskResult result = measure({.tasks = {task}, .outputs = true}).tasks.at(0);
    SCOPED_TRACE(result.name);
    ASSERT_EQ(std::ssize(result.outputs), result.items);
    double right = 0;
    size_t at = 0;
    for (const Json& output : result.outputs) {
      right += output.at("right").get<bool>() ? 1 : 0;
      if (task.type == IclType::kGeneration) {
        EXPECT_EQ(output.at("output").get<std::string>().substr(0, 1),
                  expected.at("texts")[at].get<std::string>().substr(0, 1));
        ++at;
        continue;
      }
      for (const Json& logprob : output.at("logprobs")) {
        const double wanted = expected.at("loglikelihoods")[at++].get<double>();
        EXPECT_NEAR(logprob.get<double>(), wanted, 1e-5 * std::max(1.0, -wanted));
      }
      if (output.contains("choices")) {
        EXPECT_EQ(output.at("right"), output.at("output") == output.at("answer"));
      }
    }
    const auto found = std::find_if(result.metrics.begin(), result.metrics.end(),
                                    [](const auto& metric) { return metric.first.ends_with("Accuracy"); });
    ASSERT_NE(found, result.metrics.end());
    EXPECT_NEAR(right / static_cast<double>(result.items), found->second, 1e-12);
    ++compared;
  }
  EXPECT_GT(compared, 10u);
}

TEST_F(IclEvaluatorTest, RecordsTextsAsTheModelSawThem) {
  IclTaskConfig task{
      .label = "colours", .path = kIclGoldens + "/tasks/colours.jsonl", .type = IclType::kMultipleChoice};
  task.question_prelude = "Question: ";
  const IclTaskResult result = measure({.tasks = {task}, .outputs = true}).tasks.at(0);
  EXPECT_EQ(result.outputs[0].at("prompt"), "Question: The colour of grass is");
  EXPECT_EQ(result.outputs[0].at("choices").size(), 4u);
  EXPECT_EQ(result.outputs[0].at("answer"), " green");
  const std::string table = output_table(result);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), 22);  // the head and the first twenty
  EXPECT_NE(table.find("| Question: The colour of grass is | "), std::string::npos) << table;
  EXPECT_TRUE(measure({.tasks = {task}}).tasks.at(0).outputs.empty());
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
