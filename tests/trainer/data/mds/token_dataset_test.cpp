// Tokens of every stored type, as ids of both types.
#include "trainer/data/mds/token_dataset.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "tests/trainer/data/data_testing.h"
#include "trainer/data/loader/loader.h"
#include "trainer/data/loader/open_rows.h"
#include "trainer/data/mds/mds_writer.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;

TEST(TokenDataset, ReadsEveryStoredType) {
  for (const char* name : {"uint16", "untyped", "fixed_shape", "raw_bytes", "shards"}) {
    MdsConfig config{.local_dir = golden("mds"), .split = name, .shuffle = false, .truncate = true};
    const auto first = [&](int64_t vocab_size) {
      return make_loader({{config}}, {.seq_len = 10, .global_sequences = 2, .vocab_size = vocab_size}, {}, {})
          ->next();
    };
    const Batch narrow = first(100), wide = first(100'000);
    EXPECT_EQ(narrow.tokens[10], 1) << name;
    EXPECT_TRUE(narrow.tokens.is_narrow() && narrow.targets.is_narrow()) << name;
    EXPECT_FALSE(wide.tokens.is_narrow() || wide.targets.is_narrow()) << name;
    EXPECT_EQ(narrow.tokens.widened(), wide.tokens.widened()) << name;
    EXPECT_EQ(narrow.targets.widened(), wide.targets.widened()) << name;
    const int64_t most = std::ranges::max(narrow.tokens.widened());
    EXPECT_EQ(first(most + 1).tokens, narrow.tokens) << name;
    expect_error(ExitCode::kUnusable,
                 {"token " + std::to_string(most), "vocabulary of " + std::to_string(most)},
                 [&] { first(most); });
  }
  MdsConfig text{.local_dir = golden("mds"), .split = "text_and_id"};
  expect_error(ExitCode::kUnusable, {"no column \"tokens\""}, [&] {
    make_loader({{text}}, {.seq_len = 2, .global_sequences = 1, .vocab_size = 100}, {}, {});
  });
}

TEST(TokenDataset, NarrowTokensInBytesAreNoReasonForAShorterSequence) {
  const testing::TempDir dir;
  MdsWriter writer(real_files(), dir.path(), {.columns = {{"tokens", "bytes"}}});
  std::vector<int32_t> ids(32);
  std::iota(ids.begin(), ids.end(), 1);
  writer.write({std::string(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof ids[0])});
  writer.finish();
  MdsConfig config{.local_dir = dir.path(), .split = ""};
  for (const int64_t seq_len : {16, 32})
    expect_error(
        ExitCode::kUnusable,
        {"expected int64 tokens in a column of bytes, got what looks like int32", "ndarray:int32"}, [&] {
          make_loader({{config}}, {.seq_len = seq_len, .global_sequences = 1, .vocab_size = 100}, {}, {});
        });
}

/// A data set of one shard: tokens count up, and a column of weights of each token or of each row.
class WeighedTokens : public ::testing::Test {
 protected:
  void write(const std::string& encoding, const std::vector<std::string>& weights, int64_t tokens = 8) {
    std::filesystem::create_directories(dir_ / "train");
    MdsWriter writer(real_files(), dir_ / "train",
                     {.columns = {{"tokens", "ndarray:int32"}, {"weight", encoding}}});
    std::vector<int32_t> ids(static_cast<size_t>(tokens));
    std::iota(ids.begin(), ids.end(), 1);
    for (const std::string& weight : weights) writer.write({encode_mds_array(ids.data(), tokens, 4), weight});
    writer.finish();
  }
  static std::string bytes(const std::vector<float>& weights) {
    return encode_mds_array(weights.data(), std::ssize(weights), 4);
  }
  static std::string bytes(double weight) { return {reinterpret_cast<const char*>(&weight), sizeof weight}; }
  Batch first(bool marks = true, int64_t seq_len = 8) {
    return TokenDataset(config_, {.seq_len = seq_len, .vocab_size = 100, .marks = marks})
        .read_batch(std::vector<uint32_t>{0, 1}, 3);
  }

  TempDir dir_;
  MdsConfig config_{.local_dir = dir_.path(), .shuffle = false, .weights = "weight"};
};

TEST_F(WeighedTokens, WeighTheTargetThatTheyAre) {
  write("ndarray:float32",
        {bytes({9, 1, 2, 3, 4, 5, 6, 7}), bytes({0, 0.5f, -0.25f, 1.0f / 3, 1024, 0, 0, 8})});
  config_.pad_token_id = 4;
  const Batch batch = first();
  EXPECT_EQ(std::vector<float>(batch.weights.begin(), batch.weights.begin() + 8),
            (std::vector<float>{1, 2, 0, 4, 5, 6, 7, 0}));
  EXPECT_EQ(batch.weights[9], -0.25f);
  EXPECT_EQ(batch.weights[10], 0) << "token 4 is no target";
  EXPECT_EQ(batch.weights[11], 1024);
  EXPECT_EQ(batch.weights[14], 8);
  EXPECT_EQ(std::count(batch.weights.begin() + 16, batch.weights.end(), 0.0f), 8) << "a row without a sample";
  EXPECT_EQ(weight_of(batch), 25 + 0.5 + 0.25 + 1024 + 8);
}

TEST_F(WeighedTokens, OfOneNumberWeighTheWholeRow) {
  write("float64", {bytes(1.0 / 3), bytes(2.0)});
  const Batch batch = first();
  EXPECT_EQ(batch.weights[0], static_cast<float>(std::round(0x1p24 / 3) * 0x1p-24));
  EXPECT_EQ(batch.weights[6], batch.weights[0]);
  EXPECT_EQ(batch.weights[7], 0) << "the last token has no target";
  EXPECT_EQ(batch.weights[8], 2);
  EXPECT_EQ(weight_of(batch), 7 * static_cast<double>(batch.weights[0]) + 14) << "exactly";
}

TEST_F(WeighedTokens, FollowTokensWhereRowsAreRecut) {
  write("ndarray:float32", {bytes({0, 1, 2, 3, 4, 5, 6, 7}), bytes({8, 9, 10, 11, 12, 13, 14, 15})});
  config_.recut = true;
  const Batch batch = first(true, 5);
  EXPECT_EQ(batch.weights, (std::vector<float>{1, 2, 3, 4, 0, 6, 7, 8, 9, 0, 0, 0, 0, 0, 0}));
}

TEST_F(WeighedTokens, ThatCannotBeUsedAreNamed) {
  write("ndarray:float32", {bytes({1, 1, 1, 1, 1, 1, 1, -2})});
  expect_error(ExitCode::kUnusable, {"column \"weight\" of", "at least 0, got -2", "z.weight"},
               [&] { first(false); });
  config_.weights = "score";
  expect_error(ExitCode::kUnusable, {"score"}, [&] { first(); });
  config_.weights = "weight";
  std::filesystem::remove_all(dir_ / "train");
  write("ndarray:float32", {bytes({1, 1, 1})});
  expect_error(ExitCode::kUnusable, {"expected as many weights as tokens, 8, got 3"}, [&] { first(); });
  std::filesystem::remove_all(dir_ / "train");
  write("float64", {bytes(std::nan(""))});
  expect_error(ExitCode::kUnusable, {"expected a weight from -1024 to 1024, got nan"}, [&] { first(); });
  std::filesystem::remove_all(dir_ / "train");
  write("str", {"heavy"});
  expect_error(ExitCode::kUnusable, {"expected weights as ndarray:float32", "got the encoding str"},
               [&] { first(); });
}

/// Data sets whose tokens count up from 0, sample after sample, in shards of a few samples.
class LengthsTest : public ::testing::Test {
 protected:
  MdsConfig write(const std::string& name, const std::vector<int32_t>& lengths) {
    std::filesystem::create_directory(temp_ / name);
    MdsWriter writer(real_files(), temp_ / name,
                     {.columns = {{"tokens", "ndarray:int32"}}, .size_limit = 400});
    int32_t next = 0;
    for (const int32_t length : lengths) {
      std::vector<int32_t> tokens(static_cast<size_t>(length));
      std::iota(tokens.begin(), tokens.end(), next);
      next += length;
      writer.write({encode_mds_array(tokens.data(), tokens.size(), sizeof(int32_t))});
    }
    writer.finish();
    EXPECT_GE(writer.num_shards(), lengths.size() > 8 ? 3 : 1);
    return {.local_dir = temp_.path(), .split = name, .shuffle = false};
  }

  /// The tokens of an epoch in batches of one row.
  static std::vector<int32_t> epoch(const MdsConfig& config, int64_t seq_len) {
    const auto loader =
        make_loader({{config}}, {.seq_len = seq_len, .global_sequences = 1, .vocab_size = 10'000}, {}, {});
    EXPECT_EQ(loader->samples_per_epoch(),
              count_samples({{config}}, {.seq_len = seq_len, .vocab_size = 10'000}, {}));
    std::vector<int32_t> tokens;
    while (loader->cursor().epoch == 0) {
      const std::vector<int32_t> row = loader->next().tokens.widened();
      tokens.insert(tokens.end(), row.begin(), row.end());
    }
    return tokens;
  }

  static std::vector<int32_t> counting(int32_t size) {
    std::vector<int32_t> numbers(static_cast<size_t>(size));
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }

  TempDir temp_;
};

TEST_F(LengthsTest, SamplesOfAnotherLengthAreAnErrorThatOffersEveryWayOut) {
  const MdsConfig longer = write("longer", std::vector<int32_t>(9, 256));
  const RowShape shape{.seq_len = 64, .vocab_size = 10'000};
  expect_error(ExitCode::kUnusable,
               {"256 tokens", "length is 64", "train_data.recut = true", "train_data.truncate = true",
                "seq_len = 256"},
               [&] { open_rows({{longer}}, shape, {}); });
  RowShape eval = shape;
  eval.key = "eval_data.val";
  expect_error(ExitCode::kUnusable, {"eval_data.val.recut = true", "eval_data.val.truncate = true"},
               [&] { open_rows({{longer}}, eval, {}); });
  const MdsConfig shorter = write("shorter", std::vector<int32_t>(9, 32));
  expect_error(ExitCode::kUnusable, {"32 tokens", "set seq_len = 32", "train_data.recut = true"},
               [&] { open_rows({{shorter}}, shape, {}); });
  MdsConfig mixed{.streams = {{.name = "fits", .local_dir = temp_.path(), .split = "fits"},
                              {.name = "long", .local_dir = temp_.path(), .split = "longer"}}};
  write("fits", std::vector<int32_t>(9, 64));
  expect_error(ExitCode::kUnusable, {"longer", "train_data.truncate = true"},
               [&] { open_rows({{mixed}}, shape, {}); });
}

TEST_F(LengthsTest, ALongSampleBehindTheFirstIsAnErrorToo) {
  const MdsConfig config = write("late", {8, 8, 9});
  expect_error(ExitCode::kUnusable, {"sample 2", "9 tokens"}, [&] { epoch(config, 8); });
}

TEST_F(LengthsTest, TruncateReadsTheFirstTokensOfEverySample) {
  MdsConfig config = write("data", {8, 11, 9});
  config.truncate = true;
  EXPECT_EQ(epoch(config, 8), (std::vector<int32_t>{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                                    12, 13, 14, 15, 19, 20, 21, 22, 23, 24, 25, 26}));
}

TEST_F(LengthsTest, RecutReadsEveryTokenOnceInRowsOfAnyLength) {
  MdsConfig config = write("data", std::vector<int32_t>(23, 40));
  config.recut = true;
  for (const int32_t seq_len : {1, 7, 20, 39, 40, 41, 64, 80, 333, 920})
    EXPECT_EQ(epoch(config, seq_len), counting(920 / seq_len * seq_len)) << seq_len;
  expect_error(ExitCode::kUnusable, {"seq_len = 921", "23 samples of 40"}, [&] { epoch(config, 921); });
}

TEST_F(LengthsTest, RecutRowsAreShuffledInEveryOrderAndResume) {
  MdsConfig config = write("data", std::vector<int32_t>(23, 40));
  config.recut = config.shuffle = true;
  config.num_canonical_nodes = 1;
  for (const ShuffleAlgo algo : {ShuffleAlgo::kNaive, ShuffleAlgo::kPy1e, ShuffleAlgo::kPy1br,
                                 ShuffleAlgo::kPy1s, ShuffleAlgo::kPy2s}) {
    config.shuffle_algo = algo;
    std::vector<int32_t> tokens = epoch(config, 64);
    EXPECT_NE(tokens, counting(920 / 64 * 64));
    const LoaderShape shape{.seq_len = 64, .global_sequences = 1, .vocab_size = 10'000};
    const auto resumed = make_loader({{config}}, shape, {.epoch = 0, .sample = 5}, {});
    EXPECT_EQ(resumed->next().tokens.widened(),
              std::vector<int32_t>(tokens.begin() + 5 * 64, tokens.begin() + 6 * 64));
    std::ranges::sort(tokens);
    EXPECT_EQ(tokens, counting(920 / 64 * 64));
  }
}

TEST_F(LengthsTest, RecutNeedsSamplesOfOneLength) {
  MdsConfig config = write("data", {8, 8, 9});
  config.recut = true;
  expect_error(ExitCode::kUnusable, {"sample 2", "9 tokens", "expected 8", "recut"},
               [&] { epoch(config, 6); });
}

}  // namespace
}  // namespace tycho
