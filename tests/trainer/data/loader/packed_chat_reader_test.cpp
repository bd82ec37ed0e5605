// Batches packed one by one, against LLM Foundry's packer behind torch's sampler and loader on several ranks.
#include "trainer/data/loader/packed_chat_reader.h"

#include <algorithm>
#include <set>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/loader/chat_rows.h"
#include "trainer/data/loader/loader.h"
#include "trainer/data/loader/open_rows.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

class PackedChatReaderTest : public ::testing::Test {
 protected:
  PackedChatReaderTest() {
    config_.path = temp_ / "rows.jsonl";
    config_.pack = true;
    config_.packing_ratio = NumberOrAuto{3, false};
    config_.shuffle = false;
  }

  /// Example i has lengths[i] tokens, at least 3: digits are tokens of their own, and the end of the text.
  void write_examples(const std::vector<int32_t>& lengths) {
    std::string text;
    for (size_t i = 0; i < lengths.size(); ++i) {
      const std::string digits(static_cast<size_t>(lengths[i] - 2), static_cast<char>('0' + i % 9));
      text += Json{{"prompt", "9"}, {"response", digits}}.dump() + "\n";
    }
    write_text(config_.path, text);
  }
  std::shared_ptr<const ChatDataset> open() const { return open_chat_dataset(config_, shape_, {}); }
  std::vector<int32_t> some_lengths(int count) const {
    std::vector<int32_t> lengths;
    for (int i = 0; i < count; ++i) lengths.push_back(3 + i * 29 % 23);
    return lengths;
  }
  LoaderShape loader_shape(int64_t rank, int64_t num_ranks) const {
    return {.seq_len = shape_.seq_len,
            .global_sequences = 4,
            .rank = rank,
            .num_ranks = num_ranks,
            .vocab_size = 512,
            .seed = 17,
            .tokenizer = shape_.tokenizer};
  }

  TempDir temp_;
  ChatConfig config_;
  RowShape shape_{.seq_len = 64, .vocab_size = 512, .tokenizer = golden("tokenizer/lines.json")};
};

TEST_F(PackedChatReaderTest, GivesTheRowsOfLlmFoundryOnAsManyRanksAsThereAreGroups) {
  const Json cases = Json::parse(read_file(golden("packing/cases.json"))).at("batches");
  ASSERT_GE(cases.size(), 11u);
  for (const Json& wanted : cases) {
    const int64_t ranks = wanted.at("ranks"), rows = wanted.at("rows");
    write_examples(wanted.at("lengths"));
    shape_.seq_len = wanted.at("row_tokens");
    config_.packing_ratio->value = wanted.at("ratio");
    config_.packing_groups = ranks;
    config_.max_leftover_rows.reset();
    if (!wanted.at("kept").is_null()) config_.max_leftover_rows = wanted.at("kept").get<int64_t>();
    config_.padding_side = wanted.at("side") == "left" ? PaddingSide::kLeft : PaddingSide::kRight;
    PackedChatReader reader(open(), {.global_sequences = ranks * rows});
    const Json& epochs = wanted.at("epochs");
    ASSERT_EQ(reader.num_samples(), std::ssize(epochs[0][0]) * ranks * rows);
    for (size_t epoch = 0; epoch < epochs.size(); ++epoch) {
      reader.start_epoch(static_cast<int64_t>(epoch));
      uint32_t sample = 0;
      for (size_t batch = 0; batch < epochs[epoch][0].size(); ++batch)
        for (const Json& of_rank : epochs[epoch])
          for (const Json& row : of_rank[batch]) {
            const auto given = reader.row(sample++);
            EXPECT_EQ(std::vector<uint32_t>(given.begin(), given.end()), row.get<std::vector<uint32_t>>());
          }
    }
  }
}

/// Where the tokens of a row stand, and which of them are targets.
TEST_F(PackedChatReaderTest, FillsRowsUpOnTheSideWhereLlmFoundryDoes) {
  for (const Json& wanted : Json::parse(read_file(golden("packing/cases.json"))).at("batches")) {
    write_examples(wanted.at("lengths"));
    shape_.seq_len = wanted.at("row_tokens");
    config_.packing_ratio->value = wanted.at("ratio");
    config_.packing_groups = wanted.at("ranks");
    config_.target_prompts = TargetPrompts::kAll;
    config_.padding_side = wanted.at("side") == "left" ? PaddingSide::kLeft : PaddingSide::kRight;
    PackedChatReader reader(open(),
                            {.global_sequences = wanted.at("rows").get<int64_t>() * config_.packing_groups});
    const Batch batch = reader.read_batch(std::vector<uint32_t>{0}, 1);
    const Json& row = wanted.at("first_row");
    const auto numbers = row.at("sequence_id").get<std::vector<int32_t>>();
    const auto labels = row.at("labels").get<std::vector<int32_t>>();
    for (size_t t = 0; t < numbers.size(); ++t) {
      // A label stands at its own token there, and at the token before it here.
      const bool is_target =
          t + 1 < labels.size() && labels[t + 1] != kNoTarget && numbers[t] == numbers[t + 1];
      EXPECT_EQ(batch.targets[t] != kNoTarget, is_target) << t;
      if (is_target) {
        EXPECT_EQ(batch.targets[t], batch.tokens[t + 1]);
      }
      if (t == 0) continue;
      EXPECT_EQ(batch.documents[t] != batch.documents[t - 1], numbers[t] != numbers[t - 1]) << t;
    }
    EXPECT_TRUE(std::is_sorted(batch.documents.begin(), batch.documents.end()));
  }
}

TEST_F(PackedChatReaderTest, EveryExampleIsSeenOnceAnEpochOrWaitsForTheNext) {
  write_examples(some_lengths(72));
  config_.shuffle = true;
  config_.packing_ratio->value = 6;  // more than fits: rows wait
  PackedChatReader reader(open(), {.global_sequences = 4, .seed = 5});
  std::multiset<uint32_t> seen;
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    reader.start_epoch(epoch);
    for (uint32_t row = 0; row < reader.num_samples(); ++row)
      for (const uint32_t example : reader.row(row)) seen.insert(example);
  }
  EXPECT_GT(reader.waiting_examples(), 0);
  EXPECT_EQ(std::ssize(seen) + reader.waiting_examples(), 3 * 72);
  for (const uint32_t example : seen) EXPECT_LE(seen.count(example), 3u);
}

TEST_F(PackedChatReaderTest, ExamplesInRowsThatDoNotWaitAreCountedAsLost) {
  write_examples(some_lengths(72));
  config_.packing_ratio->value = 6;
  config_.max_leftover_rows = 1;
  PackedChatReader reader(open(), {.global_sequences = 4});
  int64_t seen = 0;
  for (uint32_t row = 0; row < reader.num_samples(); ++row) seen += std::ssize(reader.row(row));
  EXPECT_GT(reader.lost_examples(), 0);
  EXPECT_EQ(seen + reader.waiting_examples() + reader.lost_examples(), 72);
  const ChatRows rows = chat_rows(open(), {.global_sequences = 4});
  EXPECT_EQ(rows.lost, reader.lost_examples());
  EXPECT_EQ(rows.lines().back(), fmt::format("{} examples are lost by max_leftover_rows", rows.lost));
}

TEST_F(PackedChatReaderTest, ALoaderResumesAtEveryPositionAndOnAnyNumberOfRanks) {
  write_examples(some_lengths(100));
  config_.shuffle = true;
  config_.packing_groups = 2;
  const auto loader = make_loader({{config_}}, loader_shape(0, 1), {}, {});
  EXPECT_EQ(loader->samples_per_epoch(),
            count_samples({{config_}}, shape_, {}, {.global_sequences = 4, .seed = 17}));
  for (int i = 0; i < 20; ++i) {
    const DataCursor cursor = loader->cursor();
    const Batch wanted = loader->next();
    for (const int64_t ranks : {1, 2, 4}) {
      Batch joined = empty_batch(4, shape_.seq_len, shape_.vocab_size);
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const Batch part = make_loader({{config_}}, loader_shape(rank, ranks), cursor, {})->next();
        const size_t size = part.tokens.size(), at = static_cast<size_t>(rank) * size;
        joined.tokens.put(at, part.tokens, 0, size);
        joined.targets.put(at, part.targets, 0, size);
        joined.documents.insert(joined.documents.end(), part.documents.begin(), part.documents.end());
      }
      EXPECT_EQ(joined.tokens, wanted.tokens);
      EXPECT_EQ(joined.targets, wanted.targets);
      EXPECT_EQ(joined.documents, wanted.documents);
    }
  }
  EXPECT_GT(loader->cursor().epoch, 1);
}

TEST_F(PackedChatReaderTest, ARatioOfOneLeavesExamplesInTheirOrder) {
  write_examples(some_lengths(20));
  config_.packing_ratio->value = 1;
  PackedChatReader reader(open(), {.global_sequences = 4});
  ASSERT_EQ(reader.num_samples(), 20);
  for (uint32_t row = 0; row < 20; ++row) EXPECT_EQ(reader.row(row)[0], row);
}

TEST_F(PackedChatReaderTest, AutoTakesTheLeastRatioOfTheGroups) {
  shape_.seq_len = 200;
  // Of two groups, the second has examples that fill a row each.
  std::vector<int32_t> lengths;
  for (int i = 0; i < 400; ++i) lengths.push_back(i % 2 == 0 ? 20 : 200);
  write_examples(lengths);
  config_.packing_ratio = NumberOrAuto{0, true};
  EXPECT_GT(batch_packing(*open(), {.global_sequences = 4}).ratio, 1);
  config_.packing_groups = 2;
  const BatchPacking packing = batch_packing(*open(), {.global_sequences = 4});
  EXPECT_EQ(packing.ratio, 1);
  EXPECT_EQ(packing.rows_per_epoch(), 400);
}

TEST_F(PackedChatReaderTest, SaysHowRowsAreFilled) {
  write_examples({10, 20, 30, 4, 60, 64});
  const ChatRows rows = chat_rows(open(), {.global_sequences = 2});
  EXPECT_EQ(rows.rows, 2);
  EXPECT_EQ(rows.waiting, 3);  // 64 has a row, 60 and 4 share one, and 30, 20 and 10 wait together
  EXPECT_EQ(rows.median, 20);
  EXPECT_DOUBLE_EQ(rows.padding_alone, 1 - 188.0 / (6 * 64));
  EXPECT_EQ(rows.summary(),
            config_.path +
                ": 6 examples of 4 to 64 tokens, half of them at most 20; packed 6 examples for 2 rows at a "
                "time, packing_ratio 3; 2 rows of 64 tokens in the first epoch, 0.0 % of which are padding "
                "(51.0 % with one example each); 3 examples go on into the second epoch");
  EXPECT_EQ(rows.lines(), (std::vector<std::string>{"6 examples of 4 to 64 tokens, half at most 20",
                                                    "packed 6 examples for 2 rows at a time, packing_ratio 3",
                                                    "0.0 % padding, 51.0 % with one example in each row",
                                                    "3 examples go on into the second epoch"}));
  config_.packing_ratio.reset();
  EXPECT_EQ(chat_rows(open(), {}).summary(),
            config_.path +
                ": 6 examples of 4 to 64 tokens, half of them at most 20; 3 rows of 64 tokens, 2.1 % of "
                "which are padding (51.0 % with one example each)");
  config_.pack = false;
  shape_.seq_len = 32;
  EXPECT_EQ(
      chat_rows(open(), {}).lines(),
      (std::vector<std::string>{"6 examples of 4 to 32 tokens, half at most 20",
                                "2 cut at 32 tokens, 0 left out: no target remains", "33.3 % padding"}));
}

TEST_F(PackedChatReaderTest, RefusesWhatMakesNoBatch) {
  write_examples(some_lengths(11));
  expect_error(ExitCode::kUnusable,
               {"rows.jsonl has 11 examples, and a batch is packed from 12", "smaller packing_ratio"},
               [&] { PackedChatReader(open(), {.global_sequences = 4}); });
  config_.packing_groups = 3;
  expect_error(ExitCode::kRecipe, {"packing_groups = 3 of ", "cannot divide a global batch of 4 sequences"},
               [&] { PackedChatReader(open(), {.global_sequences = 4}); });
}

}  // namespace
}  // namespace tycho
