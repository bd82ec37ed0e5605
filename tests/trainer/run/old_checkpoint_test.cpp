// A checkpoint that an older Tycho wrote: tests/golden/old_checkpoint, by write_old_checkpoint.txt there,
// which fixes every number.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/run/run_fixture.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/recipe/config_io.h"
#include "trainer/state/train_state.h"

namespace tycho {
namespace {

/// Element i of the t-th tensor in the order of the file, before squares and norms: as the writer has it.
float number(int t, int64_t i) { return static_cast<float>((i * 37 + t * 101) % 2048 - 1024) / 16384.0f; }

class OldCheckpointTest : public RunTest {
 protected:
  OldCheckpointTest() : info_(find_checkpoint(std::string(TYCHO_GOLDEN_DIR) + "/old_checkpoint")) {}
  const CheckpointInfo info_;
};

TEST_F(OldCheckpointTest, HasEveryTensorWithItsBits) {
  const CheckpointReader reader(info_);
  reader.verify();
  const std::vector<std::string> names = reader.names();
  ASSERT_EQ(names.size(), 33u);  // eleven parameters with two moments each
  for (int t = 0; t < std::ssize(names); ++t) {
    const std::string& name = names[static_cast<size_t>(t)];
    const TensorBytes& tensor = reader.describe(name);
    std::vector<float> found(static_cast<size_t>(tensor.num_bytes) / 4);
    reader.read(name, found.data(), tensor.num_bytes);
    const bool is_state = name.starts_with("optimizer.");
    for (int64_t i = 0; i < std::ssize(found); ++i) {
      float wanted = number(t, i);
      if (name.starts_with("optimizer.exp_avg_sq.")) wanted *= wanted;
      if (!is_state && tensor.shape.size() == 1) wanted += 1;
      ASSERT_EQ(found[static_cast<size_t>(i)], wanted) << name << " " << i;
    }
  }
}

TEST_F(OldCheckpointTest, HasItsStateOfTraining) {
  const TrainState state = TrainState::from_json(info_.manifest.at("train_state"));
  EXPECT_EQ(state.step, 4);
  EXPECT_EQ(state.samples, 16);
  EXPECT_EQ(state.tokens, 256);
  EXPECT_EQ(state.data, (DataCursor{0, 16}));
  EXPECT_EQ(state.stage, 0) << "stages of data came later";
  EXPECT_EQ(state.skipped, 2);
  EXPECT_EQ(state.controls.lr, 0.0025);
  EXPECT_EQ(state.controls.lr_by, "ann (ctl)");
  EXPECT_EQ(state.controls.clip_norm, 0.5);
  EXPECT_EQ(state.callbacks, (Json{{"mine", {{"count", 3}}}}));
  ASSERT_TRUE(state.eval.total);
  EXPECT_EQ(state.eval.total->best.loss, 4.125);
  EXPECT_EQ(state.eval.sets.at("val").last.step, 4);
}

TEST_F(OldCheckpointTest, HasARecipeThatIsStillRead) {
  const Json& recipe = info_.manifest.at("recipe");
  EXPECT_FALSE(recipe.contains("parallel")) << "this key came later";
  const TrainConfig config = read_config_or_fail(recipe);
  EXPECT_EQ(std::get<LlamaConfig>(config.model.value).width, 16);
  EXPECT_EQ(config.parallel.dp_shard, ParallelConfig().dp_shard);
  for (const TrainedUse use : {TrainedUse::kModel, TrainedUse::kEvaluation})
    EXPECT_EQ(read_trained_config(recipe, use, info_.path).seq_len, 16);
}

TEST_F(OldCheckpointTest, ResumesUnderWhatCommandsHadChanged) {
  write_data(40, 16, 64);
  const std::string data = dir_ / "data";
  config_ = read_config_or_fail(info_.manifest.at("recipe"));
  config_.run_dir = dir_ / "run";
  std::get<MdsConfig>(config_.train_data.value).local_dir = data;
  std::get<MdsConfig>(config_.eval_data.at("val").value).local_dir = data;
  config_.resume = info_.path;
  ASSERT_EQ(run(), 0);
  const std::map<int64_t, double> found = losses();
  ASSERT_EQ(found.size(), 8u);
  EXPECT_EQ(found.begin()->first, 5);
  EXPECT_EQ(found.rbegin()->first, 12);
  for (const auto& [step, loss] : found)
    EXPECT_NEAR(loss, std::log(64.0), 0.7) << step;  // an untrained model
  for (const Json& line : lines("metrics.jsonl"))
    if (line.contains("lr")) {
      EXPECT_EQ(line.at("lr"), 0.0025) << "pinned before; the schedule says otherwise";
    }
  const CheckpointInfo saved = find_checkpoint(run_dir());
  EXPECT_EQ(saved.step, 12);
  const CheckpointInfo first = list_checkpoints(run_dir() + "/checkpoints").back();
  EXPECT_EQ(first.step, 8);
  EXPECT_EQ(first.manifest.at("parent"), info_.uuid);
  const TrainState state = TrainState::from_json(saved.manifest.at("train_state"));
  EXPECT_EQ(state.skipped, 2);
  EXPECT_EQ(state.samples, 48);
  EXPECT_EQ(state.controls.lr_by, "ann (ctl)");
  EXPECT_EQ(state.eval.total->last.step, 12);
}

}  // namespace
}  // namespace tycho
