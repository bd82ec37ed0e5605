// What a few steps say of a run, against sums by hand.
#include "host/start/probed_steps.h"

#include <gtest/gtest.h>

#include "tests/bindings/run/fake_session.h"

namespace tycho {
namespace {

TEST(Probe, MeasuresWhatFollowsTheFirstStep) {
  FakeSession session;
  session.facts_.run.flops_per_token_full = 1e9;
  session.facts_.run.peak_flops = 1e12;
  const Probe measured = probe(session, 3);
  EXPECT_EQ(measured.num_steps, 3);
  EXPECT_DOUBLE_EQ(measured.first_step_s, 0.25);
  EXPECT_DOUBLE_EQ(measured.step_s, 0.25);
  EXPECT_DOUBLE_EQ(measured.speed.tokens_per_s, 256);
  EXPECT_DOUBLE_EQ(measured.speed.tflops, 0.256);
  EXPECT_DOUBLE_EQ(measured.speed.mfu.value(), 0.256);
  EXPECT_DOUBLE_EQ(measured.run_s, 2.5);
  EXPECT_EQ(measured.memory_bytes, (2 << 20) - (1 << 19));
  EXPECT_EQ(measured.memory_before, 1 << 19);
}

TEST(Probe, ARunOfOneStepHasThatOneAlone) {
  FakeSession session;
  session.facts_.run.total_steps = 1;
  const Probe measured = probe(session, 3);
  EXPECT_EQ(measured.num_steps, 1);
  EXPECT_DOUBLE_EQ(measured.step_s, 0.25);
  EXPECT_DOUBLE_EQ(measured.speed.tokens_per_s, 256);
}

TEST(Probe, ARunWithoutAStepIsAnError) {
  FakeSession session;
  session.facts_.run.total_steps = 0;
  EXPECT_THROW(probe(session, 3), Error);
}

}  // namespace
}  // namespace tycho
