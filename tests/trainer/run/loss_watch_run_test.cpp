// Whole runs that learn nothing say so.
#include <gtest/gtest.h>

#include <string>

#include "tests/trainer/run/run_fixture.h"
#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

TEST_F(RunTest, OneThatLearnsNothingWarnsAndOneThatLearnsDoesNot) {
  write_data(32, 16, 64);
  config_.max_duration = {40, DurationUnit::kBatch};
  const auto warnings = [&](const std::string& name, double lr) {
    config_.run_dir = dir_ / name;
    config_.optimizer.value = AdamWConfig{.lr = lr, .weight_decay = 0};
    EXPECT_EQ(run(), 0);
    const std::string events = read_file(run_dir() + "/events.jsonl");
    return events.find("loss has stayed above its start") != std::string::npos ||
           events.find("gradient has vanished") != std::string::npos;
  };
  EXPECT_FALSE(warnings("healthy", 1e-2));
  EXPECT_TRUE(warnings("exploded", 10));  // 3 to 10,000 warn, too
}

}  // namespace
}  // namespace tycho
