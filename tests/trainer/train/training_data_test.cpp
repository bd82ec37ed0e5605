// The batches of a run, through stages, skips and other mixes.
#include "trainer/train/training_data.h"

#include "tests/trainer/train/loop_fixture.h"

namespace tycho {
namespace {

class TrainingDataTest : public LoopTest {
 protected:
  TrainingDataTest() {
    write_data(24, config_.seq_len, 64);
    write_data(24, config_.seq_len, 40, "later");
    MdsConfig later;
    later.local_dir = dir_ / "data", later.split = "later";
    config_.data_stages.push_back({.name = "end", .start = {4, DurationUnit::kBatch}, .data = {later}});
  }
  /// Two streams of alike shares instead of one split.
  void use_streams() {
    MdsConfig data;
    data.streams = {{.name = "near", .local_dir = dir_ / "data", .split = "train", .proportion = 1},
                    {.name = "far", .local_dir = dir_ / "data", .split = "later", .proportion = 1}};
    config_.train_data.value = data;
  }
  std::vector<int32_t> next_tokens(TrainingData& data) { return data.next().tokens.widened(); }

  TrainState state_;
};

TEST_F(TrainingDataTest, GoesOnWhereTheStateStands) {
  TrainingData data(config_, context_, 1);
  data.open(state_);
  next_tokens(data);
  state_.data = data.cursor();
  EXPECT_EQ(state_.data.sample, 4);
  const std::vector<int32_t> second = next_tokens(data);

  TrainingData resumed(config_, context_, 1);
  resumed.open(state_);
  EXPECT_EQ(next_tokens(resumed), second);
  EXPECT_EQ(data.new_loader(state_)->next().tokens.widened(), second) << "a reader beside it";
}

TEST_F(TrainingDataTest, SkipsWholeBatches) {
  TrainingData data(config_, context_, 1), skipped(config_, context_, 1);
  data.open(state_);
  skipped.open(state_);
  next_tokens(data), next_tokens(data);
  skipped.skip_batches(2, state_);
  EXPECT_EQ(state_.data.sample, data.cursor().sample);
  EXPECT_EQ(next_tokens(skipped), next_tokens(data));
}

TEST_F(TrainingDataTest, BeginsEachStageAtItsStart) {
  TrainingData data(config_, context_, 1);
  data.open(state_);
  EXPECT_FALSE(data.enter_stage(0, state_)) << "it is there already";
  next_tokens(data);
  state_.data = data.cursor();
  state_.controls.mix = {{"near", 1}};
  EXPECT_TRUE(data.enter_stage(1, state_));
  EXPECT_EQ(state_.stage, 1);
  EXPECT_EQ(state_.data.sample, 0);
  EXPECT_TRUE(state_.controls.mix.empty()) << "of other streams";
  for (const int32_t token : next_tokens(data)) EXPECT_LT(token, 40);
  ASSERT_EQ(reports_.events.size(), 1u);
  EXPECT_EQ(reports_.events[0].facts.at("stage"), "end");
}

TEST_F(TrainingDataTest, RefusesStagesThatTheRecipeHasMovedOrDropped) {
  TrainingData data(config_, context_, 1);
  state_.stage = 1;
  data.open(state_);
  const auto code_of = [](const std::function<void()>& part) {
    try {
      part();
    } catch (const Error& error) {
      return error.code();
    }
    return ExitCode::kOk;
  };
  EXPECT_EQ(code_of([&] { data.enter_stage(0, state_); }), ExitCode::kUnusable);
  state_.stage = 2;
  EXPECT_EQ(code_of([&] { data.open(state_); }), ExitCode::kUnusable);
}

TEST_F(TrainingDataTest, TakesAnotherMixFromTheNextEpochOn) {
  use_streams();
  TrainingData data(config_, context_, 1);
  data.open(state_);
  next_tokens(data);
  state_.data = data.cursor();
  const Mix mix = {{"near", 0}, {"far", 1}};
  data.switch_to(data.remixed(state_, mix), state_);
  EXPECT_EQ(state_.data.epoch, 1);
  EXPECT_EQ(state_.data.sample, 0);
  for (int i = 0; i < 4; ++i)
    for (const int32_t token : next_tokens(data)) EXPECT_LT(token, 40) << "all are of the other stream";
}

TEST_F(TrainingDataTest, RefusesAMixOfOtherStreamsAndKeepsItsOwn) {
  use_streams();
  TrainingData data(config_, context_, 1);
  data.open(state_);
  try {
    data.remixed(state_, {{"nowhere", 1}});
    FAIL() << "there is no such stream";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kRecipe);
  }
  EXPECT_EQ(next_tokens(data).size(), static_cast<size_t>(4 * config_.seq_len));
}

}  // namespace
}  // namespace tycho
