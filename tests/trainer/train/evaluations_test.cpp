// Evaluations during training: what they measure, report and remember, and that training sees nothing of
// them.
#include "trainer/train/evaluations.h"

#include <csignal>

#include "tests/trainer/aten.h"
#include "tests/trainer/train/loop_fixture.h"

namespace tycho {
namespace {

class EvaluationsTest : public LoopTest {
 protected:
  EvaluationsTest() {
    write_data(8, config_.seq_len, 64, "near");
    write_data(4, config_.seq_len, 40, "far");
    for (const char* name : {"near", "far"}) {
      MdsConfig data;
      data.local_dir = dir_ / "data", data.split = name;
      config_.eval_data[name].value = data;
    }
  }

  /// Evaluations of the tiny model; `replaces`: of its average.
  struct Ready {
    Ready(const TrainConfig& config, const LoopContext& context, bool replaces = false)
        : small(config, context),
          average(small.units->owned(), small.rules, /*replaces=*/true),
          evaluations(config, "runs/test", context, small.model, *small.units, replaces ? &average : nullptr,
                      throughput) {
      evaluations.open();
    }
    SmallModel small;
    WeightAverage average;
    Throughput throughput{RunInfo{}};
    Evaluations evaluations;
  };

  /// The loss on one set, straight from the evaluator.
  double loss_on(SmallModel& small, const std::string& name) {
    Evaluator evaluator(config_.eval_data.at(name), 0, micro_batch_shape(config_, mesh_), small.model,
                        *world_, *world_, *world_, at::kCPU, {});
    return evaluator.evaluate(stop_)->loss;
  }
};

TEST_F(EvaluationsTest, MeasureEachSetAndTheTotal) {
  Ready ready(config_, context_);
  EvalRecords records;
  const EvalResults results = *ready.evaluations.evaluate(3, records);
  ASSERT_EQ(results.size(), 2u);
  for (const auto& [name, result] : results) EXPECT_EQ(result.loss, loss_on(ready.small, name)) << name;
  EXPECT_EQ(records.sets.at("near").last.loss, results.at("near").loss);
  EXPECT_EQ(records.sets.at("far").last.step, 3);
  const double near = static_cast<double>(results.at("near").tokens),
               far = static_cast<double>(results.at("far").tokens);
  EXPECT_NEAR(records.total->last.loss,
              (results.at("near").loss * near + results.at("far").loss * far) / (near + far), 1e-12);
  ASSERT_EQ(reports_.events.size(), 3u) << "one of each set, and one of the total";
  EXPECT_EQ(reports_.events[0].facts.at("name"), "far");
  EXPECT_EQ(reports_.events[2].facts.at("total"), true);
}

TEST_F(EvaluationsTest, RememberTheNewestAndTheFirstOfTheBest) {
  Ready ready(config_, context_);
  EvalRecords records;
  ready.evaluations.evaluate(1, records);
  ready.evaluations.evaluate(2, records);
  EXPECT_EQ(records.total->last.step, 2);
  EXPECT_EQ(records.total->best.step, 1) << "as good, and before";
  for (const OwnedRange& range : ready.small.units->owned()) range.weights().mul_(20);
  ready.evaluations.evaluate(3, records);
  EXPECT_GT(records.total->last.loss, records.total->best.loss);
  EXPECT_EQ(records.total->best.step, 1);
}

TEST_F(EvaluationsTest, OfOneOfSeveralSetsAreNotRemembered) {
  Ready ready(config_, context_);
  EXPECT_TRUE(ready.evaluations.is_one_of_several("near"));
  EXPECT_FALSE(ready.evaluations.is_one_of_several(""));
  const EvalResults results = *ready.evaluations.evaluate_one("near", 1);
  EXPECT_EQ(results.size(), 1u);
  ASSERT_EQ(reports_.events.size(), 1u);
  EXPECT_EQ(reports_.events[0].facts.at("total"), false);
  try {
    ready.evaluations.is_one_of_several("neat");
    FAIL() << "it is no set";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("near"), std::string::npos) << error.what();
  }
}

TEST_F(EvaluationsTest, ThatAreStoppedLeaveNothingBehind) {
  Ready ready(config_, context_);
  stop_ = SIGTERM;
  EvalRecords records;
  EXPECT_FALSE(ready.evaluations.evaluate(1, records));
  EXPECT_FALSE(records.total);
  EXPECT_TRUE(records.sets.empty());
  EXPECT_TRUE(reports_.events.empty());
}

TEST_F(EvaluationsTest, UseTheAverageOnceItHasBegunAndPutTheWeightsBack) {
  Ready ready(config_, context_, /*replaces=*/true);
  const double of_weights = ready.evaluations.evaluate_one("near", 1)->at("near").loss;
  EXPECT_EQ(of_weights, loss_on(ready.small, "near"));
  ready.average.begin();
  for (const OwnedRange& range : ready.small.units->owned()) range.weights().mul_(3);
  const std::vector<Tensor> trained = ready.small.weights();
  reports_.events.clear();
  EXPECT_EQ(ready.evaluations.evaluate_one("near", 2)->at("near").loss, of_weights)
      << "the average is the weights of before";
  EXPECT_EQ(reports_.events.at(0).facts.at("weights"), kAverageBuffer);
  const std::vector<Tensor> after = ready.small.weights();
  for (size_t i = 0; i < trained.size(); ++i) EXPECT_TRUE(trained[i].equal(after[i]));
  EXPECT_NE(loss_on(ready.small, "near"), of_weights);
}

TEST_F(EvaluationsTest, WithoutSetsAndTasksHaveNothingToDo) {
  config_.eval_data.clear();
  Ready ready(config_, context_);
  EXPECT_FALSE(ready.evaluations.has_sets());
  EXPECT_FALSE(ready.evaluations.has_tasks());
  EXPECT_TRUE(ready.evaluations.evaluate_tasks(1)) << "nothing was left out";
  EXPECT_TRUE(reports_.events.empty());
}

TEST(EvalRecords, ForgetSetsThatTheRecipeNoLongerNames) {
  EvalRecords records;
  records.total.emplace();
  records.sets = {{"near", {}}, {"far", {}}};
  EvalData sets = {{"near", {}}, {"far", {}}};
  forget_other_sets(records, sets);
  EXPECT_TRUE(records.total) << "they are the same sets";
  sets.erase("far");
  forget_other_sets(records, sets);
  EXPECT_EQ(records.sets.size(), 1u);
  EXPECT_FALSE(records.total) << "over other sets it is another number";
}

}  // namespace
}  // namespace tycho
