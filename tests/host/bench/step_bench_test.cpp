// What timed steps and a trace of them say, against sums by hand.
#include "host/bench/step_bench.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/bindings/run/fake_session.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

TEST(StepBench, TimesTheStepsAfterTheWarmUp) {
  FakeSession session;
  session.facts_.run.flops_per_token_full = 1e9;
  session.facts_.run.peak_flops = 1e12;
  const StepBench bench = bench_steps(session, 2, 5);
  EXPECT_EQ(bench.num_steps, 5);
  EXPECT_DOUBLE_EQ(bench.median_s, 0.25);
  EXPECT_DOUBLE_EQ(bench.fastest_s, 0.25);
  EXPECT_DOUBLE_EQ(bench.slowest_s, 0.25);
  EXPECT_EQ(bench.tokens_per_step, 64);
  EXPECT_DOUBLE_EQ(bench.speed.tokens_per_s, 256);
  EXPECT_DOUBLE_EQ(bench.speed.mfu.value(), 0.256);
  EXPECT_EQ(session.state().train.step, 7);
}

TEST(StepBench, ARunThatEndsInItsWarmUpHasNothingToTime) {
  FakeSession session;
  session.facts_.run.total_steps = 3;
  EXPECT_THROW(bench_steps(session, 3, 5), Error);
}

std::string event(const std::string& name, double micros, const std::string& category = "user_annotation") {
  return fmt::format(R"({{"ph": "X", "cat": "{}", "name": "{}", "ts": 1, "dur": {}}})", category, name,
                     micros);
}

TEST(PartsOfTrace, AddUpToTheSteps) {
  std::string trace = "{\"traceEvents\": [" + event("ProfilerStep#7", 1000) + "," + event("data wait", 50) +
                      "," + event("embedding forward", 10) + "," + event("block 0 forward", 90) + "," +
                      event("head forward and backward", 200) + "," + event("block 0 recompute", 100) + "," +
                      event("block 0 backward", 250) + "," + event("embedding backward", 50) + "," +
                      event("gradient norm", 30) + "," + event("optimizer", 120) + "," +
                      event("callbacks of batch_end", 5) + "," + event("aten::mm", 80, "cpu_op") + "," +
                      event("optimizer", 999, "gpu_user_annotation") +
                      ",{\"ph\": \"i\", \"name\": \"optimizer\"}]}";
  const std::vector<StepPart> parts = parts_of_trace(trace);
  std::map<std::string, double> micros;
  double shares = 0;
  for (const StepPart& part : parts) {
    micros[part.name] = part.seconds * 1e6;
    shares += part.share;
  }
  const std::map<std::string, double> expected = {
      {"waiting for data", 50}, {"forward", 100},  {"head and loss", 200},
      {"recompute", 100},       {"backward", 300}, {"gradient norm", 30},
      {"optimizer", 120},       {"callbacks", 5},  {"other", 95}};
  ASSERT_EQ(micros.size(), expected.size());
  for (const auto& [name, time] : expected) EXPECT_NEAR(micros[name], time, 1e-6) << name;
  EXPECT_NEAR(shares, 1, 1e-9);
  EXPECT_EQ(parts.front().name, "backward");
}

TEST(PartsOfTrace, OfNoStepsAreNone) {
  EXPECT_TRUE(parts_of_trace(R"({"traceEvents": []})").empty());
  EXPECT_THROW(parts_of_trace("no trace"), Error);
  EXPECT_THROW(parts_of_trace(R"({"traceEvents": 3})"), Error);
}

}  // namespace
}  // namespace tycho
