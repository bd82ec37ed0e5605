// What a run saves and takes back, built without the loop: weights, state, and what callbacks hear of it.
#include "trainer/train/run_checkpoints.h"

#include <csignal>

#include "tests/trainer/train/loop_fixture.h"

namespace tycho {
namespace {

constexpr int64_t kSamples = 24;

class RunCheckpointsTest : public LoopTest {
 protected:
  RunCheckpointsTest() { write_data(kSamples, config_.seq_len, 64); }

  /// The parts of a loop over the folder of config_.
  struct Ready {
    explicit Ready(RunCheckpointsTest& test)
        : recipe(test.config_),
          saver(CheckpointStore(real_files(), test.dir_ / "run", 0, 1), recipe.ckpt, {0}, real_files(),
                *test.world_, test.reports_),
          context{test.context_, saver, {.recipe = config_to_json(recipe)}},
          controls(recipe, kSamples, state),
          pass(recipe, context),
          update(recipe, context, pass.units(), kSamples),
          data(recipe, context, 1),
          figures(info, context, pass.layout()),
          evaluations(recipe, test.dir_ / "run", context, pass.model(), pass.units(), nullptr,
                      figures.throughput()),
          hooks(recipe, info, controls.clock(), nullptr, *test.world_, 0, test.reports_),
          checkpoints(
              {recipe, info, context, state, controls, pass, update, data, figures, evaluations, hooks}) {}
    /// Pretends that a step was made: other weights, and the next batch.
    void change() {
      for (const OwnedRange& range : pass.units().owned()) range.weights().add_(1);
      data.next();
      state.step += 1, state.data = data.cursor();
    }
    std::vector<Tensor> weights() {
      std::vector<Tensor> all;
      for (const OwnedRange& range : pass.units().owned()) all.push_back(range.weights().clone());
      return all;
    }
    const TrainConfig& recipe;
    RunInfo info;
    TrainState state;
    Saver saver;
    TrainerContext context;
    LiveControls controls;
    BatchPass pass;
    WeightUpdate update;
    TrainingData data;
    StepFigures figures;
    Evaluations evaluations;
    Hooks hooks;
    RunCheckpoints checkpoints;
  };
  std::vector<CheckpointInfo> saved() const { return list_checkpoints(dir_ / "run"); }
};

void expect_equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].equal(b[i])) << i;
}

TEST_F(RunCheckpointsTest, ResumeWhereTheSaveWas) {
  Ready first(*this);
  first.checkpoints.initialise();
  first.change();
  const std::string path = first.checkpoints.save_now();
  ASSERT_EQ(saved().size(), 1u);
  EXPECT_EQ(saved()[0].path, path);
  const std::vector<int32_t> coming = first.data.next().tokens.widened();

  Ready second(*this);
  const CheckpointInfo loaded = second.checkpoints.resume(saved());
  EXPECT_EQ(loaded.path, path);
  EXPECT_EQ(second.state.step, 1);
  EXPECT_EQ(second.info.first_step, 1);
  EXPECT_EQ(second.data.next().tokens.widened(), coming);
  expect_equal(second.weights(), first.weights());
}

TEST_F(RunCheckpointsTest, SaveAStepOnce) {
  Ready ready(*this);
  ready.checkpoints.initialise();
  ready.change();
  const std::string path = ready.checkpoints.save_now();
  EXPECT_EQ(ready.checkpoints.save_now(), path);
  ready.checkpoints.tend(/*is_due=*/false);
  ready.checkpoints.save_last(/*stopped=*/false);
  EXPECT_EQ(saved().size(), 1u);
}

TEST_F(RunCheckpointsTest, NothingTrainedIsNotSavedAtTheEnd) {
  Ready ready(*this);
  ready.checkpoints.initialise();
  ready.checkpoints.save_last(/*stopped=*/false);
  EXPECT_TRUE(saved().empty());
}

TEST_F(RunCheckpointsTest, LoadReplacesAllStateInAnOpenRun) {
  Ready ready(*this);
  ready.checkpoints.initialise();
  ready.change();
  ready.checkpoints.save_now();
  const std::vector<Tensor> then = ready.weights();
  ready.change();
  ready.checkpoints.load(saved()[0]);
  EXPECT_EQ(ready.state.step, 1);
  expect_equal(ready.weights(), then);
}

TEST_F(RunCheckpointsTest, ASignalWhileWeightsAreReadEndsTheStart) {
  Ready first(*this);
  first.checkpoints.initialise();
  first.change();
  first.checkpoints.save_now();
  Ready second(*this);
  stop_ = SIGTERM;
  try {
    second.checkpoints.resume(saved());
    FAIL() << "it goes on";
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.code()), 128 + SIGTERM);
  }
}

}  // namespace
}  // namespace tycho
