// Rows of texts, compared with those that TorchTitan gives.
#include "trainer/data/loader/text_dataset.h"

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/loader/open_rows.h"
#include "trainer/data/mds/mds_writer.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

class TextDatasetTest : public ::testing::Test {
 protected:
  TextDatasetTest() {
    fs::copy(golden("text_rows"), temp_.path(), fs::copy_options::recursive);
    shape_ = {.seq_len = 12, .vocab_size = 1000, .tokenizer = temp_ / "tokenizer/tokenizer.json"};
    config_.path = temp_ / "texts.jsonl";
  }
  Batch row(const TextConfig& config, uint32_t index) const {
    return TextDataset(config, shape_).read_batch(std::vector<uint32_t>{index}, 1);
  }
  TempDir temp_;
  RowShape shape_;
  TextConfig config_;
};

TEST_F(TextDatasetTest, GivesTheRowsOfTorchTitan) {
  const Json rows = parse_json(read_file(temp_ / "rows.json"), "rows.json");
  ASSERT_GT(rows.size(), 5u);
  config_.separate_documents = true;
  const TextDataset data(config_, shape_);
  ASSERT_EQ(data.num_rows(), std::ssize(rows));
  for (uint32_t i = 0; i < rows.size(); ++i) {
    const Batch batch = data.read_batch(std::vector<uint32_t>{i}, 1);
    EXPECT_EQ(batch.tokens.widened(), rows[i]["tokens"].get<std::vector<int32_t>>()) << i;
    EXPECT_EQ(batch.targets.widened(), rows[i]["targets"].get<std::vector<int32_t>>()) << i;
    const auto positions = rows[i]["positions"].get<std::vector<int32_t>>();
    for (size_t t = 1; t < positions.size(); ++t)
      EXPECT_EQ(batch.documents[t] != batch.documents[t - 1], positions[t] == 0) << i << " " << t;
    EXPECT_EQ(batch.valid_tokens, 12);
  }
}

TEST_F(TextDatasetTest, TakesOtherTokensAndFieldsAndFolders) {
  write_text(temp_ / "more/a.jsonl", "{\"story\": \"One text.\"}\n{\"story\": \"One text.\"}\n");
  config_ = {.path = temp_ / "more", .field = "story", .bos_token_id = 7, .eos_token_id = 9};
  shape_.seq_len = 9;
  const Batch batch = row(config_, 1);
  EXPECT_EQ(batch.tokens[0], 7);
  EXPECT_EQ(batch.targets[8], 9);
  EXPECT_EQ(batch.tokens, row(config_, 0).tokens);
  EXPECT_TRUE(batch.documents.empty());
}

TEST_F(TextDatasetTest, RowsWithoutASampleHaveNoTarget) {
  const Batch batch = TextDataset(config_, shape_).read_batch(std::vector<uint32_t>{0}, 2);
  for (size_t t = 12; t < 24; ++t) EXPECT_EQ(batch.targets[t], kNoTarget);
  EXPECT_EQ(batch.valid_tokens, 12);
}

TEST_F(TextDatasetTest, IsReadOnceByWhatSharesItWhileItsFilesAreUnchanged) {
  const OpenedData opened;
  const auto data = open_text_dataset(config_, shape_, opened);
  EXPECT_EQ(open_text_dataset(config_, shape_, opened), data);
  EXPECT_EQ(count_samples({{config_}}, shape_, opened), data->num_rows());
  EXPECT_EQ(data.use_count(), 2) << "one is held here, one in `opened`";
  EXPECT_NE(open_text_dataset(config_, shape_, {}), data);
  TextConfig other = config_;
  other.eos_token_id = 3;
  EXPECT_NE(open_text_dataset(other, shape_, opened), data);
  write_text(config_.path, read_file(config_.path) + "{\"text\": \"more\"}\n");
  EXPECT_NE(open_text_dataset(config_, shape_, opened), data);
}

TEST_F(TextDatasetTest, WhatCannotBeUsedIsNamed) {
  const auto refuses = [&](std::initializer_list<std::string_view> parts) {
    expect_error(ExitCode::kUnusable, parts, [&] { TextDataset(config_, shape_); });
  };
  shape_.seq_len = 100000;
  refuses({"texts.jsonl has", "fewer than a row of 100000"});
  shape_.seq_len = 12;
  shape_.vocab_size = 10;
  refuses({"set vocab_size to"});
  shape_.vocab_size = 1000;
  write_text(temp_ / "bad.jsonl", "{\"text\": \"a\"}\n{\"text\": \n");
  config_.path = temp_ / "bad.jsonl";
  refuses({"bad.jsonl", "2"});
  config_.path = temp_ / "nowhere";
  refuses({"nowhere"});
  shape_.tokenizer.clear();
  refuses({"there is no tokenizer"});
}

TEST_F(TextDatasetTest, ADataSetOfTextsGivesTheSameRows) {
  const std::string dir = temp_ / "as_mds";
  fs::create_directories(dir);
  MdsWriter writer(real_files(), dir, {.columns = {{"text", "str"}}, .compression = "zstd"});
  const std::string lines = read_file(config_.path);
  for (size_t at = 0; at < lines.size();) {
    const size_t end = std::min(lines.find('\n', at), lines.size());
    if (end > at) writer.write({Json::parse(lines.substr(at, end - at)).at("text").get<std::string>()});
    at = end + 1;
  }
  writer.finish();
  const TextDataset wanted(config_, shape_);
  config_.path = dir;
  const TextDataset data(config_, shape_);
  ASSERT_EQ(data.num_rows(), wanted.num_rows());
  for (uint32_t i = 0; i < data.num_rows(); ++i)
    EXPECT_EQ(data.read_batch(std::vector<uint32_t>{i}, 1).tokens,
              wanted.read_batch(std::vector<uint32_t>{i}, 1).tokens);
}

}  // namespace
}  // namespace tycho
