// Against a data set whose shard is gone.
#include "trainer/plan/plan_length.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/trainer/base/temp_dir.h"
#include "trainer/data/mds/mds_writer.h"

namespace tycho {
namespace {

/// A data set of one sample of 32 tokens.
class PlanLength : public testing::Test {
 protected:
  PlanLength() {
    MdsWriter writer(real_files(), dir_.path(), {.columns = {{"tokens", "ndarray:int32"}}});
    const std::vector<int32_t> tokens(32, 1);
    writer.write({encode_mds_array(tokens.data(), tokens.size(), sizeof(int32_t))});
    writer.finish();
    config_.train_data.value = MdsConfig{.local_dir = dir_.path(), .split = ""};
    config_.seq_len = 16;  // of another length
    config_.global_batch = Duration::parse("1sp");
    config_.max_duration = Duration::parse("3ep");
  }
  const TempDir dir_;
  TrainConfig config_;
};

TEST_F(PlanLength, ReadsNoSample) {
  ASSERT_TRUE(std::filesystem::remove(dir_ / "shard.00000.mds"));
  const Plan plan = plan_length(config_);
  EXPECT_EQ(plan.data_problem, "");
  EXPECT_EQ(plan.num_samples, 1);
  EXPECT_EQ(plan.steps, 3);
  EXPECT_EQ(plan.tokens, 48);
  EXPECT_NE(make_plan(config_).data_problem, "");
}

}  // namespace
}  // namespace tycho
