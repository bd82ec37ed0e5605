// The pass of a batch as micro-batches: against one pass of the whole, and what observers see.
#include "trainer/train/batch_pass.h"

#include "tests/trainer/aten.h"
#include "tests/trainer/train/loop_fixture.h"
#include "trainer/base/error.h"
#include "trainer/train/training_data.h"

namespace tycho {
namespace {

class BatchPassTest : public LoopTest {
 protected:
  BatchPassTest() { write_data(24, config_.seq_len, 64); }

  Batch batch() {
    TrainingData data(config_, context_, 1);
    data.open(TrainState());
    return data.next();
  }
  /// The pass of config_ with weights from its seed.
  std::unique_ptr<BatchPass> pass() {
    auto made = std::make_unique<BatchPass>(config_, context_);
    for (const OwnedRange& range : made->units().owned())
      initialise(range, static_cast<uint64_t>(config_.seed));
    return made;
  }
  static std::vector<Tensor> gradients(BatchPass& pass) {
    std::vector<Tensor> all;
    for (const OwnedRange& range : pass.units().owned()) all.push_back(range.grads.clone());
    return all;
  }
};

TEST_F(BatchPassTest, OfMicroBatchesIsThatOfTheWholeBatch) {
  const Batch given = batch();
  const std::unique_ptr<BatchPass> in_parts = pass();
  const BatchSums sums = in_parts->run(given, 0);
  EXPECT_FLOAT_EQ(sums.token_weight, 1.0F / static_cast<float>(given.valid_tokens));

  config_.micro_batch = Duration{4, DurationUnit::kSample};
  const std::unique_ptr<BatchPass> whole = pass();
  const BatchSums of_whole = whole->run(given, 0);
  EXPECT_NEAR(sums.losses_R.item<double>(), of_whole.losses_R.item<double>(),
              1e-5 * of_whole.losses_R.item<double>());
  const std::vector<Tensor> a = gradients(*in_parts), b = gradients(*whole);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].allclose(b[i], 1e-4, 1e-6)) << "unit " << i;
}

TEST_F(BatchPassTest, EndsWhereNoTargetCounts) {
  Batch given = batch();
  const auto said = [&] {
    try {
      pass()->run(given, 6);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUnusable);
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  given.weights.assign(given.targets.widened().size(), 0.0F);
  EXPECT_NE(said().find("[train_data] step 7: expected a global batch with targets whose weight is not 0"),
            std::string::npos)
      << said();
  given.weights.clear(), given.valid_tokens = 0;
  EXPECT_NE(said().find("step 7: expected a global batch with targets, got none"), std::string::npos)
      << said();
  config_.guard.action = GuardAction::kSkip;
  EXPECT_EQ(said(), "nothing");
}

TEST_F(BatchPassTest, SumsTheLossesOfTheModel) {
  const Batch given = batch();
  const std::unique_ptr<BatchPass> made = pass();
  double expected = 0;
  for (int64_t b = 0; b < 4; b += 2) {
    const auto half = [&](const std::vector<int32_t>& all) {
      return at::tensor(std::vector<int32_t>(all.begin() + b * 16, all.begin() + (b + 2) * 16), at::kInt);
    };
    expected += made->model()
                    .losses(half(given.tokens.widened()), half(given.targets.widened()))
                    .sum(at::kDouble)
                    .item<double>();
  }
  EXPECT_NEAR(made->run(given, 0).losses_R.item<double>(), expected, 1e-5 * expected);
}

TEST_F(BatchPassTest, ShowsObserversStreamsOnceAndTheLossesOfEveryMicroBatch) {
  const std::unique_ptr<BatchPass> made = pass();
  int streams_seen = 0, losses_seen = 0;
  double loss = 0;
  const BatchSums sums = made->run(batch(), 0,
                                   {.after_forward =
                                        [&](const Json& streams) {
                                          ++streams_seen;
                                          EXPECT_EQ(streams.size(), 3u)
                                              << "before two blocks, and after them";
                                          for (const Json& one : streams) EXPECT_GT(one.at("rms"), 0);
                                        },
                                    .after_losses =
                                        [&](const TokenLosses& losses) {
                                          ++losses_seen;
                                          loss += losses.losses_N.sum(at::kDouble).item<double>();
                                        }});
  EXPECT_EQ(streams_seen, 1);
  EXPECT_EQ(losses_seen, 2);
  EXPECT_NEAR(sums.losses_R.item<double>(), loss, 1e-5 * loss);
}

TEST_F(BatchPassTest, HasTheSameBitsWhetherObservedOrNot) {
  const Batch given = batch();
  const std::unique_ptr<BatchPass> a = pass(), b = pass();
  a->run(given, 3);
  b->run(given, 3, {.after_forward = [](const Json&) {}, .after_losses = [](const TokenLosses&) {}});
  const std::vector<Tensor> of_a = gradients(*a), of_b = gradients(*b);
  for (size_t i = 0; i < of_a.size(); ++i) EXPECT_TRUE(of_a[i].equal(of_b[i])) << "unit " << i;
}

}  // namespace
}  // namespace tycho
