// Tokens of steps that are counted ahead are those of the batches that the loader gives.
#include "trainer/plan/count_step_tokens.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <vector>

#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/json.h"
#include "trainer/data/loader/loader.h"

namespace tycho {
namespace {

class CountStepTokensTest : public ::testing::Test {
 protected:
  static constexpr int32_t kEos = 0;

  CountStepTokensTest() {
    std::string text;
    for (int i = 0; i < 50; ++i)
      text +=
          Json{{"prompt", "9"}, {"response", std::string(static_cast<size_t>(1 + i * 29 % 23), '5')}}.dump() +
          "\n";
    std::ofstream(temp_ / "rows.jsonl") << text;
    chat_.path = temp_ / "rows.jsonl";
    chat_.compat = ChatCompat::kComposer;
    chat_.padding_side = PaddingSide::kLeft;
    chat_.eos_token_id = kEos;
  }

  TrainConfig config() const {
    TrainConfig config;
    config.seq_len = 32;
    config.seed = 17;
    config.global_batch = {4, DurationUnit::kSample};
    config.max_duration = {1200, DurationUnit::kToken};
    config.tokenizer = std::string(TYCHO_GOLDEN_DIR) + "/tokenizer/lines.json";
    LlamaConfig model;
    model.vocab_size = 512;
    config.model.value = model;
    config.train_data.value = chat_;
    return config;
  }

  /// Tokens of a batch that are not padding: rows are filled up in front with the token that ends examples.
  static int64_t tokens_in(const Batch& batch) {
    const std::vector<int32_t> tokens = batch.tokens.widened();
    int64_t count = 0;
    for (int64_t row = 0; row < batch.num_sequences; ++row) {
      const auto begin = tokens.begin() + row * batch.seq_len, end = begin + batch.seq_len;
      count += end - std::find_if(begin, end, [](int32_t token) { return token != kEos; });
    }
    return count;
  }

  void expect_what_the_loader_gives(int64_t num_steps) const {
    const TrainConfig counted = config();
    const auto steps = count_step_tokens(counted, {});
    ASSERT_NE(steps, nullptr);
    const auto loader = make_loader(counted.train_data,
                                    {.seq_len = counted.seq_len,
                                     .global_sequences = 4,
                                     .vocab_size = 512,
                                     .seed = static_cast<uint64_t>(counted.seed),
                                     .tokenizer = counted.tokenizer},
                                    {}, {});
    int64_t sum = 0;
    for (int64_t step = 1; step <= num_steps; ++step) {
      sum += tokens_in(loader->next());
      EXPECT_EQ(steps->tokens(step), sum) << step;
    }
    EXPECT_GT(loader->cursor().epoch, 0) << "one epoch is not enough to test with";
    TrainConfig counting = counted;
    counting.step_tokens = steps;
    const int64_t total = total_steps(counting, 0);
    EXPECT_GE(steps->tokens(total), 1200);
    EXPECT_LT(steps->tokens(total - 1), 1200);
    EXPECT_GT(total, total_steps(counted, 0)) << "padding counts";
  }

  TempDir temp_;
  ChatConfig chat_;
};

TEST_F(CountStepTokensTest, RowsOfOneExample) { expect_what_the_loader_gives(20); }

TEST_F(CountStepTokensTest, RowsInBucketsOfLengths) {
  const auto sums_of_six = [&] {
    const auto steps = count_step_tokens(config(), {});
    std::vector<int64_t> sums;
    for (int64_t step = 1; step <= 6; ++step) sums.push_back(steps->tokens(step));
    return sums;
  };
  const auto as_they_come = sums_of_six();
  chat_.bucket_batches = 3;
  chat_.trim_padding = true;
  EXPECT_NE(sums_of_six(), as_they_come);
}

TEST_F(CountStepTokensTest, RowsThatArePackedOnce) {
  chat_.pack = true;
  TrainConfig packed = config();
  packed.max_duration = {5, DurationUnit::kBatch};
  const auto steps = count_step_tokens(packed, {});
  ASSERT_NE(steps, nullptr);
  EXPECT_GT(steps->mean(), 4 * 24);  // nearly full
  EXPECT_LE(steps->mean(), 4 * 32);
}

TEST_F(CountStepTokensTest, RowsThatArePackedBatchByBatch) {
  chat_.pack = true;
  chat_.packing_ratio = NumberOrAuto{1.5, false};
  expect_what_the_loader_gives(10);
}

TEST_F(CountStepTokensTest, OnlyWhereTheRecipeSaysSo) {
  chat_.compat = ChatCompat::kNone;
  EXPECT_EQ(count_step_tokens(config(), {}), nullptr);
  EXPECT_EQ(total_steps(config(), 0), 10);  // 1200 / (4 * 32), rounded up
}

}  // namespace
}  // namespace tycho
