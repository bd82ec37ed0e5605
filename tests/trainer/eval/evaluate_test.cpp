// The loss over a split: against autograd and by hand, whatever the batch, on one rank and on two.
#include "trainer/eval/evaluate.h"

#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <numbers>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/comm/thread_world.h"
#include "tests/trainer/models/decoder_oracle.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
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
  explicit Ready(BatchShape batch, const ModelConfig& config = {tiny()})
      : shape(batch),
        units(model_layout(config).units, at::kFloat, at::kCPU, UnitUse::kTrain),
        model(config, units, shape, at::kFloat, at::kCPU) {
    for (const OwnedRange& range : units.owned()) initialise(range, 7);
  }
  std::map<std::string, at::Tensor> weights() {
    std::map<std::string, at::Tensor> named;
    for (GatheredUnit& unit : units.gathered())
      for (size_t i = 0; i < unit.spec().params.size(); ++i)
        named[unit.spec().params[i].name] = unit.params()[i];
    return named;
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
    write_samples();
  }
  void write_samples() {
    const int64_t num_samples = samples_.size(0), seq_len = samples_.size(1);
    std::filesystem::remove_all(dir_ / "data");
    std::filesystem::create_directories(dir_ / "data/train");
    MdsWriter writer(real_files(), dir_ / "data/train", {.columns = {{"tokens", "ndarray:int32"}}});
    for (int64_t i = 0; i < num_samples; ++i)
      writer.write({encode_mds_array(samples_[i].data_ptr<int32_t>(), seq_len, 4)});
    writer.finish();
  }
  static std::vector<int64_t> tensor_ids(const at::Tensor& ids) {
    const at::Tensor flat = ids.reshape({-1}).to(at::kLong);
    return {flat.const_data_ptr<int64_t>(), flat.const_data_ptr<int64_t>() + flat.numel()};
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
  const std::map<std::string, at::Tensor> weights = ready.weights();
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

const std::string kTokenizer = std::string(TYCHO_GOLDEN_DIR) + "/tokenizer/lines.json";
constexpr int64_t kBpeVocab = 512;  // more than the tokenizer has

/// Bytes of each token's text, straight from the file: a character of a spelling in byte-level BPE is a byte.
std::map<int64_t, int64_t> bytes_by_token() {
  const Json file = parse_json(read_file(kTokenizer), kTokenizer);
  std::map<int64_t, int64_t> bytes;
  for (const auto& [spelling, id] : file.at("model").at("vocab").items())
    bytes[id] = std::count_if(spelling.begin(), spelling.end(), [](char c) { return (c & 0xC0) != 0x80; });
  for (const Json& added : file.at("added_tokens"))
    if (added.at("special") == true) bytes.erase(added.at("id").get<int64_t>());
  return bytes;
}

TEST_F(EvaluateTest, BitsPerByteAreThoseOfTheTargetsThatAreText) {
  write(7, kSeq, kBpeVocab);
  samples_.select(1, 5).fill_(0);  // <|endoftext|>
  write_samples();
  LlamaConfig config = tiny();
  config.vocab_size = kBpeVocab;
  Ready ready({2, kSeq}, {config});
  const at::Tensor log_probs =
      DecoderOracle(decoder_spec({config}), ready.weights()).logits(samples_).log_softmax(-1);
  const std::map<int64_t, int64_t> bytes_of = bytes_by_token();
  double nats = 0, bytes = 0;
  int left_out = 0;
  for (int64_t row = 0; row < 7; ++row)
    for (int64_t t = 0; t + 1 < kSeq; ++t) {
      const auto target = samples_[row][t + 1].item<int64_t>();
      const auto found = bytes_of.find(target);
      if (found == bytes_of.end() && ++left_out > 0) continue;
      nats -= log_probs[row][t][target].item<double>(), bytes += static_cast<double>(found->second);
    }
  EXPECT_GE(left_out, 8) << "the end of text in each row, and ids that the tokenizer lacks";

  const std::unique_ptr<Communicator> world = make_world_of_one();
  Evaluator evaluator(data_, 0, ready.shape, ready.model, *world, *world, *world, at::kCPU, {},
                      token_texts(kTokenizer, kBpeVocab, at::kCPU));
  const EvalResult result = evaluator.evaluate(stop_).value();
  EXPECT_EQ(result.sums.bytes, bytes);
  EXPECT_NEAR(*result.bits_per_byte(), nats / (std::numbers::ln2 * bytes), 2e-5);
  Evaluator without(data_, 0, ready.shape, ready.model, *world, *world, *world, at::kCPU, {});
  EXPECT_FALSE(without.evaluate(stop_)->bits_per_byte()) << "nothing says how long a text is";
}

// The last norm makes every position the same, and a row of the head makes the loss of one token infinite.
TEST_F(EvaluateTest, AnInfiniteLossOfATokenThatIsNoTextIsLeftOutOfBitsPerByte) {
  write(4, kSeq, 61);
  samples_.select(1, 5).fill_(0);
  write_samples();
  MptConfig mpt;
  mpt.width = 32, mpt.layers = 1, mpt.heads = 4, mpt.vocab_size = kBpeVocab, mpt.max_seq_len = kSeq;
  mpt.tied = false;
  Ready ready({2, kSeq}, {mpt});
  auto weights = ready.weights();
  weights.at("transformer.norm_f.weight").zero_(), weights.at("transformer.norm_f.bias").fill_(1);
  weights.at("lm_head.weight").zero_().select(0, 0).fill_(-1e38);
  const std::map<int64_t, int64_t> bytes_of = bytes_by_token();
  double text = 0, bytes = 0;
  for (const int64_t target : tensor_ids(samples_.narrow(1, 1, kSeq - 1)))
    if (bytes_of.contains(target)) text += 1, bytes += static_cast<double>(bytes_of.at(target));
  const std::unique_ptr<Communicator> world = make_world_of_one();
  Evaluator evaluator(data_, 0, ready.shape, ready.model, *world, *world, *world, at::kCPU, {},
                      token_texts(kTokenizer, kBpeVocab, at::kCPU));
  const EvalResult result = evaluator.evaluate(stop_).value();
  EXPECT_EQ(result.loss, INFINITY);
  EXPECT_NEAR(*result.bits_per_byte(), text * std::log2(kBpeVocab - 1) / bytes, 1e-5);
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
