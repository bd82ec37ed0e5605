// Runs with a loss of the recipe's own: what is recorded, that it resumes exactly, and that naming the
// cross-entropy changes nothing.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/trainer/expression/loss_terms.h"
#include "tests/trainer/run/run_fixture.h"
#include "trainer/checkpoint/checkpoint.h"

namespace tycho {
namespace {

class LossRunTest : public RunTest {
 protected:
  LossRunTest() {
    write_data(40, 16, 64);
    write_data(7, 16, 64, "val");
    MdsConfig data = config_.train_data.as<MdsConfig>();
    data.split = "val";
    config_.eval_data["val"].value = data;
    config_.log.every = {1, DurationUnit::kBatch};
  }
  void define(const LossTerms& terms) {
    DefinedLossConfig loss;
    loss.defined = "own";
    loss.terms = terms;
    config_.loss.value = loss;
  }
  /// Values of a name in metrics.jsonl, by step.
  std::map<int64_t, double> metric(const std::string& name) const {
    std::map<int64_t, double> found;
    for (const Json& line : lines("metrics.jsonl"))
      if (line.contains(name)) found[line.at("step")] = line.at(name);
    return found;
  }
};

const LossTerms kTerms = {{"smoothed", term_of("sub sub lse mul 0.9 target mul 0.1 mean")},
                          {"z", term_of("mul 0.01 mul lse lse")}};

TEST_F(LossRunTest, RecordsTheSumAndEveryTermByItsName) {
  define(kTerms);
  ASSERT_EQ(run(), 0);
  const auto loss = metric("loss"), smoothed = metric("loss.smoothed"), z = metric("loss.z"),
             entropy = metric("cross_entropy");
  ASSERT_EQ(loss.size(), 12u);
  ASSERT_EQ(smoothed.size(), 12u);
  for (const auto& [step, value] : loss) {
    EXPECT_NEAR(value, smoothed.at(step) + z.at(step), 1e-9 * value) << "step " << step;
    EXPECT_GT(entropy.at(step), 0);
  }
  EXPECT_NEAR(entropy.at(1), std::log(64), 0.5);
  EXPECT_LT(loss.at(12), loss.at(1));
  const double evaluated = metric("eval.cross_entropy").rbegin()->second;
  EXPECT_NEAR(metric("eval.perplexity").rbegin()->second, std::exp(evaluated), 1e-9 * std::exp(evaluated));
  EXPECT_NEAR(metric("eval.loss").rbegin()->second,
              metric("eval.loss.smoothed").rbegin()->second + metric("eval.loss.z").rbegin()->second, 1e-9);
  EXPECT_TRUE(metric("eval.val.loss.z").contains(12));
}

TEST_F(LossRunTest, ResumesWithTheBitsOfARunThatWasNotInterrupted) {
  define(kTerms);
  ASSERT_EQ(run("8ba"), 0);
  ASSERT_EQ(run(), 0);
  const auto resumed = newest_tensors();
  const auto losses = metric("loss");
  config_.run_dir = dir_ / "whole";
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(newest_tensors(), resumed);
  EXPECT_EQ(metric("loss"), losses);
  const Json recipe = find_checkpoint(run_dir()).manifest.at("recipe");
  EXPECT_EQ(recipe.at("loss").at("kind"), "own");
  EXPECT_EQ(recipe.at("loss").at("terms").at("z"), kTerms.at("z"));
}

TEST_F(LossRunTest, TheCrossEntropyAsATermIsTheCrossEntropy) {
  ASSERT_EQ(run(), 0);
  const auto plain = metric("loss"), evaluated = metric("eval.loss");
  EXPECT_TRUE(metric("cross_entropy").empty());
  config_.run_dir = dir_ / "defined";
  define({{"own", term_of("sub lse target")}});
  ASSERT_EQ(run(), 0);
  for (const auto& [step, value] : metric("loss")) {
    EXPECT_NEAR(value, plain.at(step), 1e-5 * value) << "step " << step;
    EXPECT_EQ(value, metric("cross_entropy").at(step));
  }
  EXPECT_NEAR(metric("eval.loss").at(12), evaluated.at(12), 1e-5);
}

TEST_F(LossRunTest, ATermThatIsNoFunctionOfATokenIsAnErrorOfTheRecipe) {
  Json logits = kTerms.at("z");
  logits["inputs"][0]["name"] = "logits";
  define({{"bad", logits}});
  EXPECT_NE(
      std::string(run_error().what()).find("expected inputs of a token such as lse and target, got logits"),
      std::string::npos);
}

}  // namespace
}  // namespace tycho
