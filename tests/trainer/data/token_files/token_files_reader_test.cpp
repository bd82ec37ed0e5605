// Rows of token files, compared with those that the readers of their own systems give.
#include "trainer/data/token_files/token_files_reader.h"

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/loader/loader.h"
#include "trainer/data/loader/open_rows.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::golden;
using testing::TempDir;

constexpr RowShape kShape = {.seq_len = 8, .vocab_size = 500};

std::vector<int32_t> row_of(const Batch& batch) {
  std::vector<int32_t> row = batch.tokens.widened();
  row.push_back(batch.targets[batch.targets.size() - 1]);
  return row;
}

TEST(TokenFilesReader, GivesTheRowsOfEachSystem) {
  const Json all = parse_json(read_file(golden("token_files/rows.json")), "rows.json");
  ASSERT_EQ(all.size(), 7u);
  for (const auto& [name, rows] : all.items()) {
    const bool is_nanoset = name.starts_with("nanoset");
    const TokenFilesConfig config{.path = golden("token_files/" + name + (is_nanoset ? ".ds" : ".bin"))};
    const auto reader = open_token_files(config, kShape);
    ASSERT_EQ(reader->num_samples(), std::ssize(rows)) << name;
    EXPECT_EQ(count_token_file_rows(config, 8), std::ssize(rows));
    for (uint32_t i = 0; i < rows.size(); ++i) {
      const Batch batch = reader->read_batch(std::vector<uint32_t>{i}, 1);
      EXPECT_EQ(row_of(batch), rows[i].get<std::vector<int32_t>>()) << name << " row " << i;
      for (size_t t = 0; t + 1 < batch.tokens.size(); ++t) EXPECT_EQ(batch.targets[t], batch.tokens[t + 1]);
      EXPECT_EQ(batch.valid_tokens, 8);
      EXPECT_TRUE(batch.documents.empty());
    }
  }
}

TEST(TokenFilesReader, GivesTheRowsThatNumpyReadsFromPlainTokens) {
  const Json all = parse_json(read_file(golden("plain_tokens/rows.json")), "rows.json");
  ASSERT_EQ(all.size(), 9u);
  for (const auto& [name, rows] : all.items()) {
    TokenFilesConfig config{.path = golden("plain_tokens/" + name)};
    if (name.starts_with("nanogpt") || name.starts_with("olmo")) {
      config.format = TokenFormat::kRaw;
      config.dtype = name.find("uint32") == std::string::npos ? TokenDtype::kUint16 : TokenDtype::kUint32;
    }
    const auto reader = open_token_files(config, {.seq_len = 8, .vocab_size = 128256});
    ASSERT_EQ(reader->num_samples(), std::ssize(rows)) << name;
    for (uint32_t i = 0; i < rows.size(); ++i)
      EXPECT_EQ(row_of(reader->read_batch(std::vector<uint32_t>{i}, 1)), rows[i].get<std::vector<int32_t>>())
          << name << " row " << i;
  }
}

TEST(TokenFilesReader, TokensOfTheWrongDtypeAreOutsideTheVocabulary) {
  const TempDir temp;
  fs::copy(golden("plain_tokens/nanogpt.bin"), temp / "train.bin");
  fs::resize_file(temp / "train.bin", 148);
  expect_error(ExitCode::kUnusable,
               {"outside the model's vocabulary of 50304", "or has another dtype than uint32"}, [&] {
                 open_token_files(
                     {.path = temp / "train.bin", .format = TokenFormat::kRaw, .dtype = TokenDtype::kUint32},
                     {.seq_len = 8, .vocab_size = 50304});
               });
}

TEST(TokenFilesReader, SeveralFilesFollowEachOtherAndNoRowSpansTwo) {
  const TempDir temp;
  for (const char* name : {"a.bin", "b.bin"}) fs::copy(golden("token_files/llmc_gpt2.bin"), temp / name);
  const auto reader = open_token_files({.path = temp.path()}, kShape);
  const int64_t half = reader->num_samples() / 2;
  EXPECT_EQ(half, 10);  // (87 - 1) / 8
  for (uint32_t i = 0; i < half; ++i)
    EXPECT_EQ(row_of(reader->read_batch(std::vector<uint32_t>{i}, 1)),
              row_of(reader->read_batch(std::vector<uint32_t>{i + static_cast<uint32_t>(half)}, 1)));
}

TEST(TokenFilesReader, NumbersDocumentsAndLeavesMissingRowsEmpty) {
  const auto reader =
      open_token_files({.path = golden("token_files/llmc_gpt2.bin"), .eos_token_id = 0}, kShape);
  const Batch batch = reader->read_batch(std::vector<uint32_t>{0}, 2);
  // Documents of 6, 2 and more tokens.
  EXPECT_EQ(batch.documents, (std::vector<int32_t>{0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(batch.valid_tokens, 8);
  for (size_t t = 8; t < 16; ++t) EXPECT_EQ(batch.targets[t], kNoTarget);
}

TEST(TokenFilesReader, WhatDoesNotFitTheModelIsNamed) {
  const TokenFilesConfig config{.path = golden("token_files/megatron_int32.bin")};
  expect_error(ExitCode::kUnusable, {"outside the model's vocabulary of 9", "megatron_int32.bin"},
               [&] { open_token_files(config, {.seq_len = 8, .vocab_size = 9}); });
  expect_error(ExitCode::kUnusable, {"no file of", "88 tokens"},
               [&] { open_token_files(config, {.seq_len = 87, .vocab_size = 500}); });
  EXPECT_EQ(open_token_files(config, {.seq_len = 86, .vocab_size = 500})->num_samples(), 1);
}

TEST(TokenFilesReader, AFileThatIsCutWhileItIsReadIsAnError) {
  const TempDir temp;
  fs::copy(golden("token_files/llmc_gpt2.bin"), temp / "a.bin");
  const auto reader = open_token_files({.path = temp / "a.bin"}, kShape);
  fs::resize_file(temp / "a.bin", 1100);
  expect_error(ExitCode::kUnusable, {"a.bin", "the file ends at byte"},
               [&] { reader->read_batch(std::vector<uint32_t>{9}, 1); });
}

TEST(TokenFilesReader, ALoaderGivesEveryRowOnceAndTheSameOnSeveralRanks) {
  const DataConfig config{{TokenFilesConfig{.path = golden("token_files/nanoset.ds")}}};
  EXPECT_EQ(count_samples(config, kShape, {}), 9);
  const auto tokens = [&](int64_t num_ranks) {
    std::vector<int32_t> all;
    std::vector<std::unique_ptr<DataLoader>> ranks;
    for (int64_t rank = 0; rank < num_ranks; ++rank)
      ranks.push_back(make_loader(config,
                                  {.seq_len = 8,
                                   .global_sequences = 2,
                                   .rank = rank,
                                   .num_ranks = num_ranks,
                                   .vocab_size = 500,
                                   .seed = 5},
                                  {}, {}));
    for (int step = 0; step < 6; ++step)
      for (const auto& rank : ranks) {
        const std::vector<int32_t> part = rank->next().tokens.widened();
        all.insert(all.end(), part.begin(), part.end());
      }
    return all;
  };
  EXPECT_EQ(tokens(1), tokens(2));
}

}  // namespace
}  // namespace tycho
