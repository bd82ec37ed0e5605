// The loss over a split: against autograd and by hand, whatever the batch, on one rank and on two.
#include "trainer/eval/evaluate.h"

#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/comm/thread_world.h"
#include "tests/trainer/models/decoder_oracle.h"
#include "trainer/base/error.h"
#include "trainer/data/mds/mds_writer.h"
#include "trainer/sharding/init.h"

namespace tycho {
namespace {

constexpr int64_t kSeq = 12, kVocab = 61;

LlamaConfig tiny() {
  LlamaConfig c;
  c.width = 32, c.layers = 2, c.heads = 4, c.kv_heads = 2, c.ffn_width = 48, c.vocab_size = kVocab;
  c.init_std = 0.2;
  return c;
}

/// A model with weights of its own, the same on every rank.
struct Ready {
  explicit Ready(BatchShape batch)
      : shape(batch),
        units(model_layout({tiny()}).units, at::kFloat, at::kCPU, UnitUse::kTrain),
        model({tiny()}, units, shape, at::kFloat, at::kCPU) {
    for (const OwnedRange& range : units.owned()) initialise(range, 7);
  }
  BatchShape shape;
  LocalUnits units;
  Model model;
};

class EvaluateTest : public testing::Test {
 protected:
  EvaluateTest() { std::get<MdsConfig>(data_.value).local_dir = dir_ / "data"; }

  void write(int64_t num_samples, int64_t seq_len = kSeq, int32_t vocab = kVocab) {
    at::manual_seed(3);
    samples_ = at::randint(vocab, {num_samples, seq_len}, at::kInt);
    std::filesystem::create_directories(dir_ / "data/train");
    MdsWriter writer(real_files(), dir_ / "data/train", {.columns = {{"tokens", "ndarray:int32"}}});
    for (int64_t i = 0; i < num_samples; ++i)
      writer.write({encode_mds_array(samples_[i].data_ptr<int32_t>(), seq_len, 4)});
    writer.finish();
  }
  EvalResult evaluate(int64_t batch, int64_t max_sequences = 0) {
    Ready ready({batch, kSeq});
    const std::unique_ptr<Communicator> world = make_world_of_one();
    Evaluator evaluator(data_, max_sequences, ready.shape, ready.model, *world, *world, *world, at::kCPU, {});
    return evaluator.evaluate(stop_).value();
  }
  Error error_of(int64_t batch) {
    try {
      evaluate(batch);
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "evaluation did not fail";
    return Error("");
  }

  TempDir dir_;
  DataConfig data_;
  at::Tensor samples_;
  std::atomic<int> stop_ = 0;
};

/// What a loss may change by, relatively, when products of other shapes sum their terms in another order: a
/// unit of fp32 for each of the tens of terms that a logit is the sum of.
constexpr double kOtherOrder = 64 * 0x1p-24;

TEST_F(EvaluateTest, IsTheMeanOverAllTokensAsAutogradSeesIt) {
  write(7);
  Ready ready({2, kSeq});
  std::map<std::string, at::Tensor> weights;
  for (GatheredUnit& unit : ready.units.gathered())
    for (size_t i = 0; i < unit.spec().params.size(); ++i)
      weights[unit.spec().params[i].name] = unit.params()[i];
  at::Tensor targets = at::full({7, kSeq}, -100, at::kInt);
  targets.narrow(1, 0, kSeq - 1).copy_(samples_.narrow(1, 1, kSeq - 1));
  const double sum =
      DecoderOracle(decoder_spec({tiny()}), weights).loss_sum(samples_, targets).item<double>();

  const EvalResult result = evaluate(2);  // three batches and a half
  EXPECT_EQ(result.tokens, 7 * (kSeq - 1));
  EXPECT_NEAR(result.loss, sum / (7 * (kSeq - 1)), 2e-5);
  EXPECT_DOUBLE_EQ(result.perplexity, std::exp(result.loss));
  EXPECT_GT(result.seconds, 0);
}

TEST_F(EvaluateTest, DoesNotDependOnTheBatch) {
  write(10);
  const double one = evaluate(1).loss;
  for (const int64_t batch : {2, 3, 4, 10, 16})
    EXPECT_NEAR(evaluate(batch).loss, one, kOtherOrder * one) << batch;
}

TEST_F(EvaluateTest, TakesTheFirstSequencesInFileOrder) {
  write(9);
  const EvalResult five = evaluate(2, 5);
  EXPECT_EQ(five.tokens, 5 * (kSeq - 1));
  EXPECT_EQ(evaluate(3, 100).tokens, 9 * (kSeq - 1));
  std::get<MdsConfig>(data_.value).shuffle = false;
  EXPECT_EQ(evaluate(2, 5).loss, five.loss);
}

TEST_F(EvaluateTest, LeavesTheWeightsAndGradientsAlone) {
  write(5);
  Ready ready({2, kSeq});
  std::vector<at::Tensor> before;
  for (GatheredUnit& unit : ready.units.gathered()) {
    unit.flat_grads().fill_(3);
    before.push_back(unit.flat_params().clone());
  }
  const std::unique_ptr<Communicator> world = make_world_of_one();
  Evaluator(data_, 0, ready.shape, ready.model, *world, *world, *world, at::kCPU, {}).evaluate(stop_);
  for (size_t i = 0; i < before.size(); ++i) {
    EXPECT_TRUE(at::equal(ready.units.gathered()[i].flat_params(), before[i]));
    EXPECT_TRUE(ready.units.gathered()[i].flat_grads().eq(3).all().item<bool>());
  }
}

TEST_F(EvaluateTest, RanksShareTheSplitAndAgree) {
  write(7);
  const EvalResult alone = evaluate(2);
  constexpr int kRanks = 3;  // two rounds, of which the second has one sequence for all
  std::vector<EvalResult> results(kRanks);
  ThreadWorld(kRanks).run([&](Communicator& world) {
    Ready ready({2, kSeq});
    Evaluator evaluator(data_, 0, ready.shape, ready.model, world, world, world, at::kCPU, {});
    results[static_cast<size_t>(world.rank())] = evaluator.evaluate(stop_).value();
  });
  for (const EvalResult& result : results) {
    EXPECT_EQ(result.tokens, alone.tokens);
    EXPECT_NEAR(result.loss, alone.loss, kOtherOrder * alone.loss);
    EXPECT_EQ(result.loss, results[0].loss);
  }
}

TEST_F(EvaluateTest, AStopEndsThePassWithoutAResult) {
  write(7);
  stop_ = SIGTERM;
  Ready ready({2, kSeq});
  const std::unique_ptr<Communicator> world = make_world_of_one();
  EXPECT_FALSE(Evaluator(data_, 0, ready.shape, ready.model, *world, *world, *world, at::kCPU, {})
                   .evaluate(stop_)
                   .has_value());
}

TEST_F(EvaluateTest, DataThatDoesNotFitIsNamed) {
  Error error = error_of(2);
  EXPECT_EQ(error.code(), ExitCode::kUnusable);
  EXPECT_NE(std::string(error.what()).find("data/train"), std::string::npos) << error.what();
  write(4, kSeq - 1);
  error = error_of(2);
  EXPECT_EQ(error.code(), ExitCode::kUnusable);
  EXPECT_NE(std::string(error.what()).find("has 11 tokens"), std::string::npos) << error.what();
  EXPECT_NE(std::string(error.what()).find("eval_data.recut = true"), std::string::npos) << error.what();
}

TEST_F(EvaluateTest, TokensOutsideTheVocabularyAreNamed) {
  write(40, kSeq, 4 * kVocab);
  const Error error = error_of(2);
  EXPECT_EQ(error.code(), ExitCode::kUnusable);
  EXPECT_NE(std::string(error.what()).find("outside the model's vocabulary of 61"), std::string::npos)
      << error.what();
}

}  // namespace
}  // namespace tycho
