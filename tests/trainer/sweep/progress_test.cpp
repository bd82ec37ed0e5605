// Numbers out of run folders, while they are written.
#include "trainer/sweep/progress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "tests/trainer/base/temp_dir.h"

namespace tycho {
namespace {

class ProgressTest : public testing::Test {
 protected:
  void metrics(int step, double loss, int attempt = 1) {
    std::ofstream(dir_ / "metrics.jsonl", std::ios::app)
        << Json({{"step", step}, {"attempt", attempt}, {"tokens", step * 10}, {"loss", loss}}).dump() << "\n";
  }
  /// Of a set or of all; the only set is both.
  void eval(int step, double loss, const std::string& name = "", bool is_only = false) {
    Json facts = {{"loss", loss}, {"total", name.empty() || is_only}};
    if (!name.empty()) facts["name"] = name;
    std::ofstream(dir_ / "events.jsonl", std::ios::app)
        << Json({{"step", step}, {"kind", "eval"}, {"text", ""}, {"facts", facts}}).dump() << "\n";
  }
  TempDir dir_;
  RunProgress progress_{dir_.path()};
};

TEST_F(ProgressTest, FollowsAFileAndDropsStepsThatAreDoneAgain) {
  EXPECT_FALSE(progress_.update());
  for (int step = 1; step <= 20; ++step) metrics(step, step);
  EXPECT_TRUE(progress_.update());
  EXPECT_FALSE(progress_.update());
  EXPECT_EQ(progress_.step(), 20);
  EXPECT_EQ(progress_.tokens(), 200);
  EXPECT_EQ(comparable_value(progress_, "loss"), 19.5) << "mean of the last tenth";
  EXPECT_EQ(comparable_value(progress_, "train.loss"), 19.5);
  metrics(11, 0.5, 2);
  progress_.update();
  EXPECT_EQ(progress_.series("loss").x.size(), 11u);
  EXPECT_EQ(comparable_value(progress_, "loss"), 0.5);
  EXPECT_FALSE(comparable_value(progress_, "nothing"));
}

TEST_F(ProgressTest, ARunThatStopsBetweenTwoRecordsHasTrainedUpToItsCheckpoint) {
  const auto event = [&](const char* kind, int step) {
    std::ofstream(dir_ / "events.jsonl", std::ios::app)
        << Json({{"step", step}, {"attempt", 1}, {"kind", kind}, {"text", ""}}).dump() << "\n";
  };
  event("run_start", 0), event("checkpoint", 607), event("run_end", 607);
  progress_.update();
  EXPECT_EQ(progress_.step(), 607) << "log.every is longer";
  metrics(1000, 3.0), event("checkpoint", 900), event("not_started", 5000);
  progress_.update();
  EXPECT_EQ(progress_.step(), 1000) << "a save ends after steps that come later";
}

TEST_F(ProgressTest, NumbersThatCallbacksAndEvaluationsRecordKeepTheTokens) {
  metrics(20, 3.0);
  std::ofstream(dir_ / "metrics.jsonl", std::ios::app) << R"({"step": 20, "attempt": 1, "eval.loss": 2.5})"
                                                       << "\n";
  eval(20, 2.5);
  progress_.update();
  EXPECT_EQ(progress_.tokens(), 200);
  EXPECT_EQ(progress_.series("eval.loss").y, std::vector<double>{2.5});
}

TEST_F(ProgressTest, EvaluationsGoByTheirLastValueAndTheirName) {
  eval(5, 3.0), eval(10, 2.5), eval(10, 7, "c4");
  progress_.update();
  EXPECT_EQ(comparable_value(progress_, "eval.loss"), 2.5);
  EXPECT_EQ(comparable_value(progress_, "eval.c4.loss"), 7);
  EXPECT_EQ(progress_.newest().at("eval").at("c4").at("loss"), 7);
  EXPECT_EQ(progress_.series("eval.loss").x.size(), 2u);
}

TEST_F(ProgressTest, TheOnlySetIsTheTotal) {
  eval(5, 3.0, "val", true), eval(10, 2.0, "val", true);
  progress_.update();
  EXPECT_EQ(comparable_value(progress_, "eval.loss"), 2);
  EXPECT_EQ(comparable_value(progress_, "eval.val.loss"), 2);
  EXPECT_EQ(progress_.newest().at("eval").at("loss"), 2);
}

TEST_F(ProgressTest, AnIncompleteLineWaitsAndGarbageIsSkipped) {
  std::ofstream(dir_ / "metrics.jsonl") << "{\"step\": 1, \"loss\"";
  EXPECT_FALSE(progress_.update());
  std::ofstream(dir_ / "metrics.jsonl", std::ios::app) << ": 4}\nnot json\n[]\n{\"step\": \"x\"}\n";
  EXPECT_TRUE(progress_.update());
  EXPECT_EQ(comparable_value(progress_, "loss"), 4);
}

TEST_F(ProgressTest, AnEvaluationThatIsNaNIsTheLastValueAndOneSkippedStepIsLeftOut) {
  std::ofstream(dir_ / "metrics.jsonl")
      << R"({"step":1,"tokens":10,"loss":3})"
      << "\n"
      << R"({"step":2,"tokens":20,"loss":null,"mfu":null,"not_finite":{"loss":"nan"}})"
      << "\n";
  eval(1, 2.5);
  std::ofstream(dir_ / "events.jsonl", std::ios::app)
      << R"({"step":2,"kind":"eval","text":"","facts":{"loss":null,"not_finite":{"loss":"inf"},"total":true}})"
      << "\n";
  progress_.update();
  EXPECT_EQ(comparable_value(progress_, "eval.loss"), INFINITY);
  EXPECT_TRUE(std::isnan(comparable_value(progress_, "loss").value()));  // the last tenth is that step alone
  EXPECT_TRUE(std::isnan(progress_.newest().at("train").at("loss").get<double>())) << "a rule sees it";
  EXPECT_FALSE(comparable_value(progress_, "mfu"));
  for (int step = 3; step <= 40; ++step) metrics(step, step);
  std::ofstream(dir_ / "metrics.jsonl", std::ios::app)
      << R"({"step":41,"tokens":410,"loss":null,"not_finite":{"loss":"nan"}})"
      << "\n";
  progress_.update();
  EXPECT_EQ(comparable_value(progress_, "loss"), 39) << "the mean of 38, 39 and 40";
}

TEST_F(ProgressTest, PatienceEndsAfterValuesWithoutImprovement) {
  const PatienceRule rule{.metric = "eval.loss", .evals = 2, .min_delta = 0.1};
  for (const double loss : {5.0, 4.0, 3.95}) eval(static_cast<int>(loss * 100), loss);
  std::ofstream(dir_ / "events.jsonl").close();
  const std::vector<double> losses = {5.0, 4.0, 3.95, 3.92};
  for (size_t i = 0; i < losses.size(); ++i) {
    eval(static_cast<int>(i), losses[i]);
    RunProgress now(dir_.path());
    now.update();
    EXPECT_EQ(is_out_of_patience(rule, now, Goal::kMin), i == 3) << i;
  }
}

}  // namespace
}  // namespace tycho
