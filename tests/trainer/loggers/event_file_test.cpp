// Tests of TensorBoard's events, byte for byte against those of its own classes.
#include "trainer/loggers/event_file.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/trainer/metrics/fixtures.h"

namespace tycho {
namespace {

TEST(Crc32c, HasTheValuesOfRfc3720) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(""), 0u);
}

// Written by tests/golden/loggers/tensorboard_events.py.
TEST(EventFile, HasTheBytesOfTensorBoardsOwnWriter) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(),
                   kInf = std::numeric_limits<double>::infinity();
  std::string longest;
  for (int i = 0; i < 60; ++i) longest += "long ";
  const std::string events =
      version_event(1700000000.25) +
      text_event(1700000000.5, 0, "recipe", "```lua\nreturn r  -- größer\n```") +
      numbers_event({1, 1700000001.0, {{"loss", 3.4125}, {"lr", 5.8e-4}, {"tokens", 524288.0}}}) +
      numbers_event({3000000000, 1700000002.0, {{"mfu(%)", kNan}, {"x", -kInf}, {"zero", 0.0}}}) +
      restart_event(1700000003.0, 2) + numbers_event({2, 1700000004.0, {{longest, -1.5e-30}}}) +
      histogram_event(1700000005.0, 3, {"gradients/w", -1.0, 1.25, {4, 0, 9}});
  const std::string golden =
      text_of(std::string(TYCHO_SOURCE_DIR) + "/tests/golden/loggers/tensorboard.events");
  ASSERT_FALSE(golden.empty());
  EXPECT_TRUE(events == golden);
}

}  // namespace
}  // namespace tycho
