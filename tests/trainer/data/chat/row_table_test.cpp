// Finetuning data as Parquet gives the examples of the same rows as JSONL.
#include "trainer/data/chat/row_table.h"

#include <numeric>

#include "tests/trainer/data/data_testing.h"
#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/prepare/convert_chat.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

std::string chat_file(const std::string& name) { return golden("parquet/nested/" + name + ".parquet"); }

class ParquetChatTest : public ::testing::Test {
 protected:
  ParquetChatTest() {
    const Json rows = Json::parse(read_file(golden("parquet/nested/rows.json")));
    for (const Json& row : rows.at("chat")) jsonl_ += Json{{"messages", row.at("messages")}}.dump() + "\n";
    write_text(temp_ / "rows.jsonl", jsonl_);
  }
  std::unique_ptr<ChatDataset> open(const std::string& path) const {
    const ChatConfig config{.path = path, .target_responses = TargetResponses::kAll};
    return std::make_unique<ChatDataset>(config, shape_, never_stopped);
  }
  Batch batch_of(const ChatDataset& data) const {
    std::vector<uint32_t> rows(static_cast<size_t>(data.num_rows()));
    std::iota(rows.begin(), rows.end(), 0u);
    return data.read_batch(rows, data.num_rows());
  }

  TempDir temp_;
  std::string jsonl_;
  RowShape shape_{.seq_len = 512, .vocab_size = 512, .tokenizer = golden("tokenizer/lines.json")};
};

TEST_F(ParquetChatTest, ConversationsAreThoseOfJsonl) {
  const Batch wanted = batch_of(*open(temp_ / "rows.jsonl"));
  for (const char* name : {"chat", "chat_v2", "chat_pages", "chat_old_lists"}) {
    const auto data = open(chat_file(name));
    EXPECT_EQ(data->num_rows(), 40);
    EXPECT_EQ(batch_of(*data).tokens, wanted.tokens) << name;
    EXPECT_EQ(batch_of(*data).targets, wanted.targets) << name;
  }
  std::filesystem::create_directory(temp_ / "folder");
  std::filesystem::copy(chat_file("chat"), temp_ / "folder/a.parquet");
  std::filesystem::copy(temp_ / "rows.jsonl", temp_ / "folder/b.jsonl");
  EXPECT_EQ(open(temp_ / "folder")->num_rows(), 80);
}

TEST_F(ParquetChatTest, RowsOfTokens) {
  const auto data = open(chat_file("tokens"));
  const Batch batch = batch_of(*data);
  const std::vector<int32_t> all = batch.tokens.widened();
  ASSERT_EQ(data->num_rows(), 30);
  for (int64_t row = 0; row < 30; ++row) {
    const auto* tokens = all.data() + row * batch.seq_len;
    for (int t = 0; t < 6; ++t) EXPECT_EQ(tokens[t], 3 + t);
    EXPECT_EQ(tokens[6], 10 + row);
    EXPECT_EQ(tokens[7], 11);
  }
  shape_.vocab_size = 512;
  ConvertChatOptions options;
  options.inputs = {chat_file("tokens")};
  options.splits.out_dir = temp_ / "out";
  expect_error(ExitCode::kUsage, {"tokens.parquet holds tokens already", "t.data.chat"},
               [&] { convert_chat(options); });
}

TEST_F(ParquetChatTest, AConversionWritesTheBytesOfOneFromJsonl) {
  const auto convert = [&](const std::string& input, const std::string& out, int threads) {
    ConvertChatOptions options;
    options.inputs = {input};
    options.splits.out_dir = temp_ / out;
    options.splits.size_limit = 900;
    options.threads = threads;
    const ConvertResult result = convert_chat(options);
    EXPECT_EQ(result.splits.at(0).samples, 40);
    return temp_ / out + "/train";
  };
  const std::string wanted = convert(temp_ / "rows.jsonl", "a", 1), made = convert(chat_file("chat"), "b", 2);
  EXPECT_EQ(read_file(made + "/index.json"), read_file(wanted + "/index.json"));
  EXPECT_EQ(read_file(made + "/shard.00001.mds"), read_file(wanted + "/shard.00001.mds"));
}

TEST_F(ParquetChatTest, WrongFilesAreNamed) {
  expect_error(ExitCode::kUnusable, {"plain.parquet has no columns \"messages\""},
               [&] { open(golden("parquet/plain.parquet")); });
  expect_error(ExitCode::kUnusable, {"empty.parquet has no rows"}, [&] { open(chat_file("empty")); });
  // A plain value, which stands behind its length.
  std::string bytes = read_file(chat_file("chat_pages"));
  const size_t at = bytes.find(std::string("\x09\0\0\0assistant", 13));
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at + 4, 9, "assistent");
  write_text(temp_ / "a.parquet", bytes);
  expect_error(ExitCode::kUnusable, {"a.parquet, row 1] message 3 has the role \"assistent\""},
               [&] { open(temp_ / "a.parquet"); });
}

TEST_F(ParquetChatTest, FoldersThatDatasetsSavedGiveTheExamplesOfTheirRows) {
  std::string lines;
  for (int i = 0; i < 6; ++i)
    lines += fmt::format(
        "{{\"messages\": [{{\"role\": \"user\", \"content\": \"Question {0}?\"}}, "
        "{{\"role\": \"assistant\", \"content\": \"Answer {0}.\"}}]}}\n",
        i);
  write_text(temp_ / "saved.jsonl", lines);
  const auto from_lines = open(temp_ / "saved.jsonl"), saved = open(golden("arrow/saved/chats"));
  ASSERT_EQ(saved->num_rows(), 6);
  const Batch a = batch_of(*from_lines), b = batch_of(*saved);
  EXPECT_EQ(a.tokens.widened(), b.tokens.widened());
  EXPECT_EQ(a.targets, b.targets);
  EXPECT_EQ(open(golden("arrow/saved/tokens"))->num_rows(), 6);
}

TEST(RowColumns, LabelsOfTransformersAreTakenAsTheyAre) {
  const auto tokenizer = load_tokenizer(golden("tokenizer/lines.json"));
  const ChatEncoder encoder({.path = "x"}, "", *tokenizer, 4);
  const RowColumns columns({{"input_ids", "json"}, {"labels", "json"}}, "x");
  const auto encode = [&](const std::string& ids, const std::string& labels) {
    return columns.encode({{"json", ids}, {"json", labels}}, encoder, 100, "x, row 1");
  };
  const ChatExample example = encode("[5, 6, 7, 8, 9]", "[-100, 6, -100, 8, 9]");
  EXPECT_EQ(example.tokens, (std::vector<int32_t>{5, 6, 7, 8}));  // of seq_len, without another eos
  EXPECT_EQ(example.learnt, (std::vector<uint8_t>{0, 1, 0, 1}));
  EXPECT_TRUE(example.truncated);
  expect_error(ExitCode::kUnusable, {"x, row 1", "a label for each of 3 tokens, got 2"},
               [&] { encode("[1, 2, 3]", "[-100, 2]"); });
  expect_error(ExitCode::kUnusable, {"the token 2 or -100 as label 1, got 3", "not shifted"},
               [&] { encode("[1, 2, 3]", "[-100, 3, 3]"); });
  expect_error(ExitCode::kUnusable, {"token -100 is outside"}, [&] { encode("[-100, 2]", "[-100, 2]"); });
}

}  // namespace
}  // namespace tycho
