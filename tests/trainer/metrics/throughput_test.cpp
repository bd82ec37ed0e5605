// Tests of speed and ETA against numbers worked out by hand and a published run.
#include "trainer/metrics/throughput.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

RunInfo run_of(int64_t total_steps) {
  RunInfo run;
  run.total_steps = total_steps;
  run.flops_per_token_full = 1e9;
  run.flops_per_token_causal = 8e8;
  return run;
}

/// In rows of seq_len.
Work work(int64_t tokens) { return work_of(tokens, 1e9, 8e8); }

TEST(SpeedTest, AgreesWithAPublishedRun) {
  // Llama-3 8B, S = 8192: 17,581 tokens/s of 5.79144e10 FLOPs are 1,018.2 TFLOP/s, 45.25 % of 2.25e15.
  RunInfo run;
  run.flops_per_token_full = 5.79144e10;
  run.flops_per_token_causal = 5.15e10;
  run.peak_flops = 2.25e15;
  const Speed speed = speed_of(17581, 1.0, run);
  EXPECT_NEAR(speed.tflops, 1018.2, 0.05);
  EXPECT_NEAR(*speed.mfu, 0.4525, 5e-5);
  EXPECT_NEAR(*speed.mfu_causal, 17581 * 5.15e10 / 2.25e15, 1e-12);
}

TEST(SpeedTest, HasNoMfuWithoutAPeakAndNothingWithoutTime) {
  EXPECT_FALSE(speed_of(1000, 1, run_of(1)).mfu.has_value());
  EXPECT_EQ(speed_of(1000, 0, run_of(1)).tokens_per_s, 0);
}

TEST(ThroughputTest, AveragesOverItsWindowOnly) {
  Throughput throughput(run_of(100), 2);
  for (const double step_s : {9.0, 5.0, 1.0, 3.0}) throughput.add_step(work(1000), step_s);
  EXPECT_DOUBLE_EQ(throughput.speed().tokens_per_s, 2000 / 4.0);
  EXPECT_DOUBLE_EQ(throughput.speed().tflops, 0.5e-6 * 1e6);
}

TEST(ThroughputTest, ForgetsTheFirstStepOnceThereIsASecond) {
  Throughput throughput(run_of(10));
  throughput.add_step(work(1000), 30);
  EXPECT_DOUBLE_EQ(throughput.eta_s(), 9 * 30);
  throughput.add_step(work(1000), 2);
  EXPECT_DOUBLE_EQ(throughput.speed().tokens_per_s, 500);
  EXPECT_DOUBLE_EQ(throughput.eta_s(), 8 * 2);
}

TEST(ThroughputTest, CountsPausesInTheEtaAndNotInTheSpeed) {
  Throughput throughput(run_of(10));
  for (int i = 0; i < 5; ++i) throughput.add_step(work(1000), 2);
  throughput.add_pause(10);  // a checkpoint of 10 s in 5 steps: 2 s per step
  EXPECT_DOUBLE_EQ(throughput.speed().tokens_per_s, 500);
  EXPECT_DOUBLE_EQ(throughput.eta_s(), 5 * (2 + 2));
}

TEST(ThroughputTest, CountsFromWhereTheProcessResumed) {
  RunInfo run = run_of(100);
  run.first_step = 90;
  Throughput throughput(run);
  EXPECT_EQ(throughput.eta_s(), 0);
  throughput.add_step(work(1000), 2);
  EXPECT_DOUBLE_EQ(throughput.eta_s(), 9 * 2);
  for (int i = 0; i < 9; ++i) throughput.add_step(work(1000), 2);
  EXPECT_EQ(throughput.eta_s(), 0);
}

TEST(ThroughputTest, FillsTheMetricsOfAStep) {
  RunInfo run = run_of(2);
  run.peak_flops = 1e12;
  Throughput throughput(run);
  throughput.add_step(work(500), 1);
  StepMetrics metrics;
  throughput.fill(metrics);
  EXPECT_DOUBLE_EQ(metrics.tokens_per_s, 500);
  EXPECT_DOUBLE_EQ(metrics.tflops, 0.5);
  EXPECT_DOUBLE_EQ(metrics.tflops_causal, 0.4);
  EXPECT_DOUBLE_EQ(*metrics.mfu, 0.5);
  EXPECT_DOUBLE_EQ(*metrics.mfu_causal, 0.4);
  EXPECT_DOUBLE_EQ(metrics.eta_s, 1);
}

}  // namespace
}  // namespace tycho
