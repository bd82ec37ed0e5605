// The same rows in files of every kind give the same examples, and every kind of file of a folder is read.
#include "trainer/data/chat/chat_blocks.h"

#include <numeric>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/mds/mds_writer.h"
#include "trainer/data/prepare/convert_chat.h"
#include "trainer/data/storage/compress.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

class ChatBlocksTest : public ::testing::Test {
 protected:
  static std::string jsonl(int from, int to) {
    std::string text;
    for (int i = from; i < to; ++i)
      text += fmt::format(R"({{"prompt": "What is {}, or \"{}\"?", "response": "{} is\n{}."}})"
                          "\n",
                          i, i, i, i);
    return text;
  }
  static std::string table(int from, int to, char separator) {
    std::string text = fmt::format("id{0}response{0}prompt\n", separator);
    for (int i = from; i < to; ++i)
      text += fmt::format("{0}{1}\"{0} is\n{0}.\"{1}\"What is {0}, or \"\"{0}\"\"?\"\n", i, separator);
    return text;
  }
  static std::string compressed(const char* how, const std::string& text) {
    return compress_bytes(parse_compression(how, "test"), text);
  }
  void write_mds(const std::string& name, int from, int to) {
    std::filesystem::create_directories(temp_ / name);
    MdsWriter writer(real_files(), temp_ / name, {.columns = {{"prompt", "str"}, {"response", "str"}}});
    for (int i = from; i < to; ++i)
      writer.write({fmt::format("What is {}, or \"{}\"?", i, i), fmt::format("{} is\n{}.", i, i)});
    writer.finish();
  }
  ChatDataset open(ChatConfig config) const {
    config.path = temp_ / config.path;
    return {config, shape_, never_stopped};
  }
  static std::vector<int32_t> tokens_of(const ChatDataset& data) {
    std::vector<uint32_t> rows(static_cast<size_t>(data.num_rows()));
    std::iota(rows.begin(), rows.end(), 0U);
    return data.read_batch(rows, data.num_rows()).tokens.widened();
  }

  TempDir temp_;
  RowShape shape_{.seq_len = 128, .vocab_size = 512, .tokenizer = golden("tokenizer/lines.json")};
};

TEST_F(ChatBlocksTest, EveryKindOfFileGivesTheSameExamples) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"a.jsonl", jsonl(0, 9)},
      {"a.ndjson", jsonl(0, 9)},
      {"a.json", jsonl(0, 9)},
      {"a.rows", jsonl(0, 9)},
      {"a.jsonl.gz", compressed("gz", jsonl(0, 9))},
      {"a.jsonl.zst", compressed("zstd", jsonl(0, 9))},
      {"a.json.zstd", compressed("zstd", jsonl(0, 9))},
      {"a.csv", table(0, 9, ',')},
      {"a.tsv", table(0, 9, '\t')},
      {"a.csv.gz", compressed("gz", table(0, 9, ','))}};
  write_mds("mds", 0, 9);
  write_text(temp_ / "expected.jsonl", jsonl(0, 9));
  const std::vector<int32_t> wanted = tokens_of(open({.path = "expected.jsonl"}));
  ASSERT_EQ(wanted.size(), 9U * 128);
  EXPECT_EQ(tokens_of(open({.path = "mds"})), wanted);
  const auto convert = [&](const std::string& from, const std::string& to) {
    ConvertChatOptions options;
    options.inputs = {temp_ / from};
    options.splits.out_dir = temp_ / to;
    convert_chat(options);
    return read_file(temp_ / to + "/train/shard.00000.mds");
  };
  const std::string shard = convert("expected.jsonl", "out");
  EXPECT_EQ(convert("mds", "out-mds"), shard);
  for (const auto& [name, text] : files) {
    write_text(temp_ / name, text);
    EXPECT_EQ(tokens_of(open({.path = name})), wanted) << name;
    EXPECT_EQ(convert(name, "out-" + name), shard) << name;
  }
}

TEST_F(ChatBlocksTest, AFolderIsReadWholeAndWhatIsNotIsTold) {
  write_text(temp_ / "in/a.jsonl", jsonl(0, 2));
  write_text(temp_ / "in/b.jsonl.gz", compressed("gz", jsonl(2, 4)));
  write_text(temp_ / "in/c.jsonl.zst", compressed("zstd", jsonl(4, 5)));
  write_text(temp_ / "in/d.json", jsonl(5, 6));
  write_text(temp_ / "in/e.ndjson", jsonl(6, 7));
  write_text(temp_ / "in/f.csv", table(7, 9, ','));
  write_text(temp_ / "in/dataset_infos.json", "{\"default\": {}}\n");
  write_text(temp_ / "in/notes.txt", "not rows\n");
  write_text(temp_ / "expected.jsonl", jsonl(0, 9));
  const ChatDataset data = open({.path = "in"});
  EXPECT_EQ(tokens_of(data), tokens_of(open({.path = "expected.jsonl"})));
  ASSERT_EQ(data.notes().size(), 1U);
  for (const char* part : {"skipped", "dataset_infos.json", "notes.txt"})
    EXPECT_NE(data.notes()[0].find(part), std::string::npos) << data.notes()[0];
  ConvertChatOptions options;
  options.inputs = {temp_ / "in"};
  options.splits.out_dir = temp_ / "out";
  const ConvertResult result = convert_chat(options);
  EXPECT_EQ(result.splits.at(0).samples, 9);
  EXPECT_EQ(result.notes, data.notes());
}

TEST_F(ChatBlocksTest, SplitsOfAFolderAreReadByTheirNames) {
  write_text(temp_ / "in/train.jsonl", jsonl(0, 4));
  write_text(temp_ / "in/validation.csv", table(4, 7, ','));
  write_text(temp_ / "in/test.jsonl", jsonl(7, 9));
  EXPECT_EQ(open({.path = "in"}).num_rows(), 4);
  EXPECT_EQ(open({.path = "in", .split = "val"}).num_rows(), 3);
  EXPECT_EQ(open({.path = "in", .split = "test"}).num_rows(), 2);
  EXPECT_EQ(open({.path = "in", .split = ""}).num_rows(), 9);
  expect_error(ExitCode::kUnusable, {"expected files of the split dev_2", "train, validation, test"},
               [&] { open({.path = "in", .split = "dev_2"}); });
}

TEST_F(ChatBlocksTest, RowsOfACsvThatCannotBeUsedAreNamedOrSkipped) {
  write_text(temp_ / "a.csv", "prompt,response\none,two\nthree\nfour,\nfive,six\n");
  expect_error(ExitCode::kUnusable, {"a.csv:3", "1 values"}, [&] { open({.path = "a.csv"}); });
  const ChatDataset data = open({.path = "a.csv", .bad_rows = BadRows::kSkip});
  EXPECT_EQ(data.num_rows(), 2);
  EXPECT_NE(data.warnings().at(0).find("2 "), std::string::npos) << data.warnings()[0];
  write_text(temp_ / "b.csv", "text\none\n");
  expect_error(ExitCode::kUnusable, {"b.csv has no columns \"messages\""}, [&] { open({.path = "b.csv"}); });
}

}  // namespace
}  // namespace tycho
