// The update of a step: the optimizer's own, the average at its times, and rules that change in between.
#include "trainer/train/weight_update.h"

#include "tests/trainer/aten.h"
#include "tests/trainer/train/loop_fixture.h"
#include "trainer/optim/make_optimizer.h"

namespace tycho {
namespace {

/// A tiny model and its update.
struct Updated {
  Updated(const TrainConfig& config, const LoopContext& context)
      : clip(config.clip), small(config, context), update(config, context, *small.units, 100) {}
  /// Sets gradients that depend on the seed alone, so that two models get equal ones.
  void set_gradients(uint64_t seed) {
    at::manual_seed(seed);
    for (const OwnedRange& range : small.units->owned()) range.grads.normal_();
  }
  void step(double lr, int64_t steps_done, int64_t skipped = 0) {
    update.step(clip, lr, update.grad_norm(clip), steps_done, skipped);
  }
  ClipConfig clip;
  LoopTest::SmallModel small;
  WeightUpdate update;
};

class WeightUpdateTest : public LoopTest {
 protected:
  static void expect_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].equal(b[i])) << "unit " << i;
  }
  /// The state of the optimizer, copied.
  static std::vector<Tensor> state(WeightUpdate& update) {
    std::vector<Tensor> all;
    for (const StateBuffer& buffer : update.optimizer().state()) all.push_back(buffer.flat.clone());
    return all;
  }
};

TEST_F(WeightUpdateTest, IsTheOptimizersOwnWithClippedGradients) {
  config_.clip.norm = 0.5;
  Updated updated(config_, context_), plain(config_, context_);
  const std::unique_ptr<Optimizer> optimizer =
      make_optimizer(config_.optimizer, plain.small.units->owned(), plain.update.rules());
  for (int64_t steps_done = 0; steps_done < 3; ++steps_done) {
    updated.set_gradients(steps_done), plain.set_gradients(steps_done);
    double squares = 0;
    for (const OwnedRange& range : plain.small.units->owned())
      squares += range.grads.to(at::kDouble).square().sum().item<double>();
    const GradNorm norm = updated.update.grad_norm(config_.clip);
    EXPECT_NEAR(norm.norm_1.item<double>(), std::sqrt(squares), 1e-4 * std::sqrt(squares));
    updated.step(1e-2, steps_done);
    optimizer->step(1e-2, steps_done + 1, norm.scale_1);
  }
  expect_same(updated.small.weights(), plain.small.weights());
}

TEST_F(WeightUpdateTest, CountsUpdatesNotSteps) {
  Updated skipped(config_, context_), first(config_, context_);
  skipped.set_gradients(1), first.set_gradients(1);
  skipped.step(1e-2, /*steps_done=*/7, /*skipped=*/7);
  first.step(1e-2, 0);
  expect_same(skipped.small.weights(), first.small.weights());
}

TEST_F(WeightUpdateTest, MovesTheAverageAtItsTimesAlone) {
  config_.ema.decay = 0.75;
  config_.ema.start = {2, DurationUnit::kBatch};
  config_.ema.every = {2, DurationUnit::kBatch};
  Updated updated(config_, context_);
  WeightAverage& average = *updated.update.average();
  std::vector<std::vector<Tensor>> after;
  for (int64_t steps_done = 0; steps_done < 5; ++steps_done) {
    updated.set_gradients(steps_done);
    updated.step(1e-2, steps_done);
    after.push_back(updated.small.weights());
    EXPECT_EQ(average.has_begun(), steps_done >= 1) << steps_done;
  }
  // After step 2 it is the weights, after step 4 it has moved, and steps 3 and 5 leave it alone.
  updated.small.units->owned();
  average.put_in_place();
  const std::vector<Tensor> averaged = updated.small.weights();
  average.put_back();
  for (size_t i = 0; i < averaged.size(); ++i)
    EXPECT_TRUE(averaged[i].allclose(after[1][i] * 0.75 + after[3][i] * 0.25, 1e-6, 1e-7)) << "unit " << i;
}

TEST_F(WeightUpdateTest, HasNoAverageWithoutEma) {
  EXPECT_EQ(Updated(config_, context_).update.average(), nullptr);
}

TEST_F(WeightUpdateTest, TakesOtherRulesAndKeepsTheStateOfTheOptimizer) {
  std::get<AdamWConfig>(config_.optimizer.value).weight_decay = 0;
  Updated updated(config_, context_);
  updated.set_gradients(1);
  updated.step(1e-2, 0);
  const std::vector<Tensor> before = state(updated.update);
  TrainConfig changed = config_;
  std::get<AdamWConfig>(changed.optimizer.value).weight_decay = 0.5;
  updated.update.change(changed);
  expect_same(state(updated.update), before);
  // Only weight decay acts on the first parameter, a matrix: its gradient and state are zero.
  for (const StateBuffer& buffer : updated.update.optimizer().state()) buffer.flat.zero_();
  for (const OwnedRange& range : updated.small.units->owned()) range.grads.zero_();
  const double was = updated.small.weights()[0].flatten()[0].item<double>();
  updated.step(1e-2, 1);
  EXPECT_NEAR(updated.small.weights()[0].flatten()[0].item<double>(), was * (1 - 1e-2 * 0.5), 1e-7);
}

}  // namespace
}  // namespace tycho
