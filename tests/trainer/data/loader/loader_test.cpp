// Batches in their order: resume, ranks, errors of the thread.
#include "trainer/data/loader/loader.h"

#include <numeric>
#include <set>
#include <thread>

#include "tests/trainer/data/data_testing.h"
#include "trainer/data/loader/open_rows.h"
#include "trainer/data/mds/conversion_note.h"
#include "trainer/data/mds/mds_writer.h"
#include "trainer/data/order/numpy_rng.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;

constexpr int64_t kSamples = 23, kTokens = 8;

/// numpy.random.default_rng(seed + epoch).permutation(n).
std::vector<uint32_t> permutation(int64_t n, uint64_t seed, int64_t epoch) {
  std::vector<uint32_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0u);
  NumpyRng(seed + static_cast<uint64_t>(epoch)).shuffle(std::span(order));
  return order;
}

/// Sample s holds the tokens 10 s, 10 s + 1, … in several shards.
class LoaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(temp_ / "train");
    MdsWriter writer(real_files(), temp_ / "train",
                     {.columns = {{"tokens", "ndarray:int32"}}, .size_limit = 500, .hashes = {"xxh3_128"}});
    for (int32_t s = 0; s < kSamples; ++s) {
      std::vector<int32_t> tokens(kTokens);
      std::iota(tokens.begin(), tokens.end(), 10 * s);
      writer.write({encode_mds_array(tokens.data(), kTokens, sizeof(int32_t))});
    }
    writer.finish();
    ASSERT_GT(writer.num_shards(), 2);
    config_.local_dir = temp_.path();
  }

  std::unique_ptr<DataLoader> open(const DataCursor& cursor = {}) const {
    return make_loader({{config_}}, shape_, cursor, {});
  }

  /// Which samples a batch holds, after checking its tokens and targets.
  static std::vector<int32_t> samples_of(const Batch& batch) {
    std::vector<int32_t> samples;
    const std::vector<int32_t> tokens = batch.tokens.widened(), targets = batch.targets.widened();
    for (int64_t b = 0; b < batch.num_sequences; ++b) {
      const int32_t* row = tokens.data() + b * batch.seq_len;
      const int32_t* target = targets.data() + b * batch.seq_len;
      for (int64_t t = 0; t < batch.seq_len; ++t) {
        EXPECT_EQ(row[t], row[0] + t);
        EXPECT_EQ(target[t], t + 1 < batch.seq_len ? row[t + 1] : -100);
      }
      samples.push_back(row[0] / 10);
    }
    EXPECT_EQ(batch.valid_tokens, batch.num_sequences * (batch.seq_len - 1));
    return samples;
  }

  void expect_unusable(std::initializer_list<std::string_view> parts) {
    expect_error(ExitCode::kUnusable, parts, [&] {
      const auto loader = open();
      for (int i = 0; i < 10; ++i) loader->next();
    });
  }

  TempDir temp_;
  MdsConfig config_;
  LoaderShape shape_{.seq_len = kTokens, .global_sequences = 4, .vocab_size = 10 * kSamples, .seed = 17};
};

TEST_F(LoaderTest, SkippingLandsWhereReadingDoes) {
  for (const DataCursor start : {DataCursor{0, 0}, DataCursor{0, 12}, DataCursor{2, 3}}) {
    const auto read = open(start);
    const auto skipped = open(start);
    for (int64_t n = 0; n < 17; ++n) {
      const DataCursor there = skipped->cursor_after(n);
      EXPECT_EQ(there.epoch, read->cursor().epoch) << n;
      EXPECT_EQ(there.sample, read->cursor().sample) << n;
      read->next();
    }
  }
  const DataCursor far = open()->cursor_after(1'000'000'000'000);  // 5 batches an epoch
  EXPECT_EQ(far.epoch, 200'000'000'000);
  EXPECT_EQ(far.sample, 0);
}

TEST_F(LoaderTest, AnEpochMayBeShorterThanTheData) {
  config_.epoch_size = 9;
  EXPECT_EQ(count_samples({{config_}}, {}, {}), 9);
  const auto loader = open();
  EXPECT_EQ(loader->samples_per_epoch(), 8);
  std::set<int32_t> seen;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::set<int32_t> now;
    for (int64_t batch = 0; batch < 2; ++batch)
      for (const int32_t sample : samples_of(loader->next())) EXPECT_TRUE(now.insert(sample).second);
    seen.insert(now.begin(), now.end());
  }
  EXPECT_GT(seen.size(), 9u) << "each epoch has samples of its own";
}

TEST_F(LoaderTest, AnEpochMayBeLongerThanTheData) {
  config_.epoch_size = 2 * kSamples + 6;
  config_.shuffle = false;
  const auto loader = open();
  EXPECT_EQ(loader->samples_per_epoch(), 52);
  std::vector<int> times(kSamples);
  for (int64_t batch = 0; batch < 13; ++batch)
    for (const int32_t sample : samples_of(loader->next())) ++times[static_cast<size_t>(sample)];
  EXPECT_EQ(std::count(times.begin(), times.end(), 2), kSamples - 6);
  EXPECT_EQ(std::count(times.begin(), times.end(), 3), 6);
  EXPECT_EQ(loader->cursor(), (DataCursor{1, 0}));
}

TEST_F(LoaderTest, APadTokenIsNotATarget) {
  config_.pad_token_id = 13;
  config_.shuffle = false;
  for (const int64_t vocab_size : {10 * kSamples, int64_t{100'000}}) {
    shape_.vocab_size = vocab_size;
    const Batch batch = open()->next();
    EXPECT_EQ(batch.valid_tokens, 4 * (kTokens - 1) - 1);
    EXPECT_EQ(batch.tokens[kTokens + 3], 13);
    EXPECT_EQ(batch.targets[kTokens + 2], kNoTarget);
    EXPECT_EQ(batch.targets[kTokens + 3], 14);
  }
}

TEST_F(LoaderTest, FollowsTheOrderOfTheSampler) {
  const auto loader = open();
  EXPECT_EQ(loader->samples_per_epoch(), 20);
  EXPECT_EQ(count_samples({{config_}}, {}, {}), kSamples);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const auto order = permutation(kSamples, 17, epoch);
    for (int64_t at = 0; at < 20; at += 4) {
      EXPECT_EQ(loader->cursor(), (DataCursor{epoch, at}));
      const Batch batch = loader->next();
      EXPECT_GE(batch.wait_s, 0);
      const auto samples = samples_of(batch);
      EXPECT_TRUE(std::equal(samples.begin(), samples.end(), order.begin() + at));
    }
  }
}

TEST_F(LoaderTest, ShuffleSeedAndFileOrder) {
  config_.shuffle_seed = 99;
  const auto order = permutation(kSamples, 99, 0);
  EXPECT_EQ(samples_of(open()->next())[0], static_cast<int32_t>(order[0]));
  config_.shuffle = false;
  EXPECT_EQ(samples_of(open()->next()), (std::vector<int32_t>{0, 1, 2, 3}));
}

TEST_F(LoaderTest, NumbersTheDocumentsOfARow) {
  config_.shuffle = false;
  EXPECT_TRUE(open()->next().documents.empty());
  const auto documents = [&] {
    const std::vector<int32_t> all = open()->next().documents;
    EXPECT_EQ(all.size(), 4u * kTokens);
    return std::vector<int32_t>(all.begin() + kTokens, all.begin() + 2 * kTokens);  // tokens 10, 11, ...
  };
  config_.eos_token_id = 12;
  EXPECT_EQ(documents(), (std::vector<int32_t>{0, 0, 0, 1, 1, 1, 1, 1}));
  config_.eos_token_id = 17;  // the row's last token
  EXPECT_EQ(documents(), std::vector<int32_t>(8, 0));
  config_.eos_token_id.reset();
  config_.bos_token_id = 12;
  EXPECT_EQ(documents(), (std::vector<int32_t>{0, 0, 1, 1, 1, 1, 1, 1}));
  config_.bos_token_id = 10;
  EXPECT_EQ(documents(), std::vector<int32_t>(8, 1));
}

TEST_F(LoaderTest, ResumesAtEveryPosition) {
  std::vector<DataCursor> cursors;
  std::vector<TokenArray> batches;
  const auto loader = open();
  for (int i = 0; i < 14; ++i) {
    cursors.push_back(loader->cursor());
    batches.push_back(loader->next().tokens);
  }
  for (size_t i = 0; i < cursors.size(); ++i) {
    const auto resumed = open(cursors[i]);
    EXPECT_EQ(resumed->cursor(), cursors[i]);
    for (size_t j = i; j < cursors.size(); ++j)
      ASSERT_EQ(resumed->next().tokens, batches[j]) << i << " " << j;
  }
  EXPECT_EQ(open({0, 20})->cursor(), (DataCursor{1, 0}));  // no whole batch is left in epoch 0
}

TEST_F(LoaderTest, RanksShareTheGlobalBatch) {
  const auto whole = open();
  shape_.num_ranks = 2;
  const auto first = open();
  shape_.rank = 1;
  const auto second = open();
  for (int i = 0; i < 8; ++i) {
    auto shares = samples_of(first->next());
    for (const int32_t sample : samples_of(second->next())) shares.push_back(sample);
    EXPECT_EQ(shares, samples_of(whole->next()));
    EXPECT_EQ(first->cursor(), whole->cursor());
  }
  shape_.num_ranks = 3;
  expect_error(ExitCode::kTopology, {"4 sequences", "3 ranks"}, [&] { open(); });
}

TEST_F(LoaderTest, ShorterSequencesTakeTheFirstTokensWhereTheRecipeSaysSo) {
  shape_.seq_len = 5;
  expect_unusable({"sample 0 of", "8 tokens", "train_data.recut = true", "train_data.truncate = true"});
  config_.truncate = true;
  samples_of(open()->next());
  shape_.seq_len = 9;
  expect_unusable({"sample 0 of", "8 tokens", "sequence length is 9", "seq_len = 8", "--concat-tokens 9"});
}

/// Two data sets of the fixture's tokens: samples below 23, and the same again as stream two.
class StreamsLoaderTest : public LoaderTest {
 protected:
  void SetUp() override {
    LoaderTest::SetUp();
    std::filesystem::create_directory(temp_ / "two");
    MdsWriter writer(real_files(), temp_ / "two",
                     {.columns = {{"tokens", "ndarray:uint16"}}, .size_limit = 300, .hashes = {}});
    for (uint16_t s = 0; s < 11; ++s) {
      std::vector<uint16_t> tokens(kTokens);
      std::iota(tokens.begin(), tokens.end(), static_cast<uint16_t>(10 * (kSamples + s)));
      writer.write({encode_mds_array(tokens.data(), kTokens, sizeof(uint16_t))});
    }
    writer.finish();
    config_.streams = {{.name = "one", .local_dir = temp_.path()},
                       {.name = "two", .local_dir = temp_.path(), .split = "two"}};
    config_.local_dir.clear();
    shape_.vocab_size = 400;
  }
};

TEST_F(StreamsLoaderTest, RowsOfSeveralDataSetsShareABatch) {
  const auto order = permutation(34, 17, 0);
  const auto loader = open();
  EXPECT_EQ(loader->samples_per_epoch(), 32);
  EXPECT_EQ(count_samples({{config_}}, {}, {}), 34);
  for (int64_t at = 0; at < 32; at += 4) {
    const auto samples = samples_of(loader->next());
    EXPECT_TRUE(std::equal(samples.begin(), samples.end(), order.begin() + at));
  }
}

TEST_F(StreamsLoaderTest, ResumesInEveryBatchOfEveryMethod) {
  config_.streams[0].proportion = 0.5;
  config_.streams[1].proportion = 0.5;
  config_.shuffle_algo = ShuffleAlgo::kPy1e;
  config_.shuffle_block_size = 9;
  for (const BatchingMethod method : {BatchingMethod::kRandom, BatchingMethod::kStratified,
                                      BatchingMethod::kPerStream, BatchingMethod::kDevicePerStream}) {
    config_.batching_method = method;
    const auto loader = open();
    std::vector<DataCursor> cursors;
    std::vector<std::vector<int32_t>> batches;
    for (int i = 0; i < 12; ++i) {
      cursors.push_back(loader->cursor());
      batches.push_back(samples_of(loader->next()));
      const auto of_two =
          std::count_if(batches[i].begin(), batches[i].end(), [](int32_t s) { return s >= kSamples; });
      if (method == BatchingMethod::kStratified) {
        EXPECT_EQ(of_two, 2);
      }
      if (method == BatchingMethod::kPerStream || method == BatchingMethod::kDevicePerStream) {
        EXPECT_TRUE(of_two == 0 || of_two == 4);
      }
    }
    for (size_t i = 0; i < cursors.size(); ++i)
      EXPECT_EQ(samples_of(open(cursors[i])->next()), batches[i]) << i;
  }
}

TEST_F(StreamsLoaderTest, ABatchIsAFunctionOfItsStepAlone) {
  config_.shuffle_algo = ShuffleAlgo::kPy1e;
  config_.shuffle_block_size = 9;
  constexpr int kSteps = 20;  // more than two epochs
  for (const BatchingMethod method :
       {BatchingMethod::kRandom, BatchingMethod::kStratified, BatchingMethod::kPerStream}) {
    config_.batching_method = method;
    config_.prefetch = 4;
    shape_.num_ranks = 1;
    shape_.rank = 0;
    const auto whole = open();
    std::vector<std::vector<int32_t>> batches;
    for (int step = 0; step < kSteps; ++step) batches.push_back(samples_of(whole->next()));
    for (const int64_t ranks : {1, 2, 4})
      for (const int64_t prefetch : {1, 16})
        for (const int begin : {0, 3, 11}) {
          std::vector<std::vector<int32_t>> joined(kSteps);
          for (int64_t rank = 0; rank < ranks; ++rank) {
            shape_.num_ranks = ranks;
            shape_.rank = rank;
            config_.prefetch = prefetch;
            const auto part = open(open()->cursor_after(begin));
            for (int step = begin; step < kSteps; ++step) {
              const auto samples = samples_of(part->next());
              joined[static_cast<size_t>(step)].insert(joined[static_cast<size_t>(step)].end(),
                                                       samples.begin(), samples.end());
            }
          }
          for (size_t step = static_cast<size_t>(begin); step < kSteps; ++step)
            EXPECT_EQ(joined[step], batches[step]) << step << " of " << ranks << " ranks from " << begin;
        }
  }
}

TEST_F(StreamsLoaderTest, DocumentsAreSeparateInAllRows) {
  config_.shuffle = false;
  config_.eos_token_id = 232;
  shape_.global_sequences = 34;
  const Batch batch = open()->next();
  ASSERT_EQ(batch.documents.size(), 34u * kTokens);
  EXPECT_EQ(batch.documents[23 * kTokens + 3], 1);
  EXPECT_EQ(batch.documents[22 * kTokens + 3], 0);
}

TEST_F(StreamsLoaderTest, StreamsMustFitTheRun) {
  config_.streams[1].split = "nowhere";
  expect_unusable({"nowhere/index.json does not exist"});
  config_.streams[1] = {.name = "text", .local_dir = golden("mds"), .split = "text_and_id"};
  expect_unusable({"no column \"tokens\"", "text_and_id"});
}

size_t num_threads() {
  namespace fs = std::filesystem;
  return static_cast<size_t>(
      std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()));
}

TEST_F(LoaderTest, StopsWhileTheQueueIsFull) {
  const size_t before = num_threads();
  for (int i = 0; i < 20; ++i) {
    config_.prefetch = 1 + i % 3;
    const auto loader = open();
    if (i % 2 == 0) {
      EXPECT_EQ(loader->next().num_sequences, shape_.global_sequences);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 4));
  }
  // A thread that was joined may be listed for a moment longer.
  for (int i = 0; i < 500 && num_threads() > before; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(num_threads(), before) << "a loader left its thread behind";
}

TEST_F(LoaderTest, NamesWhatIsWrongWithTheData) {
  config_.split = "none";
  expect_unusable({"none/index.json does not exist", "tycho data convert"});
  config_.split = "train";
  shape_.global_sequences = 24;
  expect_unusable({"has 23 samples", "needs 24"});
  shape_.global_sequences = 4;
  shape_.vocab_size = 225;
  expect_unusable({"outside the model's vocabulary of 225", "sample", "shard.", "a different tokenizer"});
  shape_.vocab_size = 230;
  for (const DataCursor& cursor : {DataCursor{0, 24}, DataCursor{-1, 0}, DataCursor{0, -4}})
    expect_error(ExitCode::kUnusable, {"cannot resume", "a different data set"}, [&] { open(cursor); });
}

TEST_F(LoaderTest, ErrorsOfTheThreadAreThrownByNext) {
  const std::string path = temp_ / "train/shard.00002.mds";
  std::string bytes = read_file(path);
  bytes[bytes.size() - 1] ^= 1;
  testing::write_text(path, bytes);
  config_.shuffle = false;
  const auto loader = open();
  const auto drain = [&] {
    for (int i = 0; i < 10; ++i) loader->next();
  };
  expect_error(ExitCode::kUnusable, {"shard.00002.mds", "damaged"}, drain);
  expect_error(ExitCode::kUnusable, {"shard.00002.mds", "damaged"}, drain);  // and again
}

TEST_F(LoaderTest, ATokenizerThatIsTooLargeIsNamedAtOnce) {
  write_conversion_note(real_files(), temp_ / "train", {.tokenizer_hash = "x", .vocab_size = 500});
  expect_error(ExitCode::kUnusable, {"tokenizer of 500 tokens", "vocabulary has 230", "vocab_size to 500"},
               [&] { open(); });
  testing::write_text(temp_ / "train/tycho.json", "{\"tokenizer_hash\": 3}");
  expect_error(ExitCode::kUnusable, {"tycho.json", "\"tokenizer_hash\""}, [&] { open(); });
}

}  // namespace
}  // namespace tycho
