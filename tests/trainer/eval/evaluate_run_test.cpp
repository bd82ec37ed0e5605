// Evaluation during training: when it happens, what it reports, and that training does not notice.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/trainer/run_fixture.h"

namespace tycho {
namespace {

class EvaluateRunTest : public RunTest {
 protected:
  EvaluateRunTest() {
    write_data(40, 16, 64);
    write_data(7, 16, 64, "val");
  }
  void evaluate_every(const char* every, bool first) {
    MdsConfig data = config_.train_data.as<MdsConfig>();
    data.split = "val";
    config_.eval.data.emplace().value = data;
    if (*every != '\0') config_.eval.every = Duration::parse(every);
    config_.eval.first = first;
  }
  std::vector<Json> evaluations() const {
    std::vector<Json> found;
    for (const Json& event : lines("events.jsonl"))
      if (event.at("kind") == "eval") found.push_back(event);
    return found;
  }
  std::vector<int64_t> steps() const {
    std::vector<int64_t> found;
    for (const Json& event : evaluations()) found.push_back(event.at("step"));
    return found;
  }
};

TEST_F(EvaluateRunTest, ReportsAtIntervalsBeforeTheFirstStepAndAtTheEnd) {
  evaluate_every("5ba", /*first=*/true);
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(steps(), (std::vector<int64_t>{0, 5, 10, 12}));
  for (const Json& event : evaluations()) {
    const Json& facts = event.at("facts");
    EXPECT_EQ(facts.at("tokens"), 7 * 15);
    EXPECT_DOUBLE_EQ(facts.at("perplexity"), std::exp(facts.at("loss").get<double>()));
    EXPECT_GT(facts.at("seconds"), 0);
  }
  const Json first = evaluations().front(), last = evaluations().back();
  EXPECT_NEAR(first.at("facts").at("loss"), std::log(64.0), 0.15);
  EXPECT_LT(last.at("facts").at("loss"), first.at("facts").at("loss"));
  EXPECT_NE(first.at("text").get<std::string>().find("step 0 evaluated: loss 4."), std::string::npos)
      << first;
}

TEST_F(EvaluateRunTest, HappensAtTheEndAloneWhenNoIntervalIsGiven) {
  evaluate_every("", /*first=*/false);
  config_.eval.batches = 1;  // of 4 sequences
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(steps(), (std::vector<int64_t>{12}));
  EXPECT_EQ(evaluations()[0].at("facts").at("tokens"), 4 * 15);
}

TEST_F(EvaluateRunTest, TrainingIsTheSameBitForBitWithItAndAfterAResume) {
  ASSERT_EQ(run(), 0);
  const auto whole = newest_tensors();
  const auto whole_losses = losses();
  std::filesystem::remove_all(run_dir());

  evaluate_every("1ba", /*first=*/true);
  std::thread watcher([&] {
    while (!std::filesystem::exists(run_dir() + "/metrics.jsonl") || losses().empty()) usleep(200);
    stop_ = SIGTERM;
  });
  const int code = run();
  watcher.join();
  EXPECT_TRUE(code == 143 || code == 0) << code;
  stop_ = 0;
  ASSERT_EQ(run(), 0);
  EXPECT_EQ(newest_tensors(), whole);
  EXPECT_EQ(losses(), whole_losses);
  const std::vector<int64_t> evaluated = steps();
  EXPECT_EQ(std::count(evaluated.begin(), evaluated.end(), 0), 1);  // not again at the resume
}

TEST_F(EvaluateRunTest, MissingDataStopsTheRunBeforeItTrains) {
  evaluate_every("5ba", /*first=*/false);
  std::get<MdsConfig>(config_.eval.data->value).split = "nowhere";
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kUnusable);
  EXPECT_NE(std::string(error.what()).find("data/nowhere"), std::string::npos) << error.what();
  EXPECT_TRUE(losses().empty());
}

}  // namespace
}  // namespace tycho
