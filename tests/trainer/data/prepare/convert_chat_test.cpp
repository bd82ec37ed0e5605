// Conversations as MDS: what is written is read as the JSONL would be, and is the same whatever the threads.
#include "trainer/data/prepare/convert_chat.h"

#include <numeric>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/mds/mds_reader.h"
#include "trainer/data/prepare/dataset_damage.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

class ConvertChatTest : public ::testing::Test {
 protected:
  ConvertChatTest() {
    options_.inputs = {temp_ / "rows.jsonl"};
    options_.splits.out_dir = temp_ / "out";
    options_.splits.size_limit = 600;
    options_.splits.hashes = {"sha1"};
  }

  /// Conversations, or pairs, that say which one they are.
  std::string lines(int count, bool conversations) const {
    std::string text;
    for (int i = 0; i < count; ++i) {
      const std::string question = "größe\n\"" + std::to_string(i) + "\"",
                        answer = " модель\x7f\t" + std::to_string(2 * i);
      const Json talk = {{"messages",
                          {{{"role", "system"}, {"content", ""}},
                           {{"role", "user"}, {"content", question}},
                           {{"role", "assistant"}, {"content", answer}},
                           {{"role", "user"}, {"content", "rate"}},
                           {{"role", "assistant"}, {"content", answer}}}}};
      const Json pair = {{"prompt", question}, {"completion", answer}};
      text += (conversations ? talk : pair).dump() + (i % 5 == 0 ? "\n\n" : "\n");
    }
    return text;
  }
  Batch batch_of(const std::string& path) const {
    const ChatConfig config{.path = path, .target_responses = TargetResponses::kAll};
    const ChatDataset data(config, shape_, never_stopped);
    std::vector<uint32_t> rows(static_cast<size_t>(data.num_rows()));
    std::iota(rows.begin(), rows.end(), 0u);
    return data.read_batch(rows, data.num_rows());
  }
  /// Every file of a folder, by name.
  std::map<std::string, std::string> files_of(const std::string& dir) const {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir))
      if (entry.is_regular_file())
        files[std::filesystem::relative(entry.path(), dir)] = read_file(entry.path().string());
    return files;
  }
  void expect_unusable(std::initializer_list<std::string_view> parts) {
    expect_error(ExitCode::kUnusable, parts, [&] { convert_chat(options_); });
    EXPECT_FALSE(std::filesystem::exists(temp_ / "out/train"));
  }

  TempDir temp_;
  ConvertChatOptions options_;
  RowShape shape_{.seq_len = 128, .vocab_size = 512, .tokenizer = golden("tokenizer/lines.json")};
};

TEST_F(ConvertChatTest, WhatIsWrittenIsReadAsTheLinesAre) {
  for (const bool conversations : {true, false}) {
    write_text(options_.inputs[0], lines(40, conversations));
    const Batch wanted = batch_of(options_.inputs[0]);
    for (const bool tokens : {false, true}) {
      options_.tokenizer = tokens ? shape_.tokenizer : "";
      options_.splits.out_dir = temp_ / ("out" + std::to_string(2 * conversations + tokens));
      const ConvertResult result = convert_chat(options_);
      ASSERT_EQ(result.splits.size(), 1u);
      EXPECT_EQ(result.splits[0].samples, 40);
      EXPECT_GT(result.splits[0].shards, 1);
      EXPECT_EQ(result.splits[0].tokens > 0, tokens);
      const std::string dir = options_.splits.out_dir + "/train";
      EXPECT_EQ(batch_of(dir).tokens, wanted.tokens);
      EXPECT_EQ(batch_of(dir).targets, wanted.targets);
      EXPECT_TRUE(find_damage(dir, /*quick=*/false).empty());
      MdsReader reader(read_mds_index(dir), VerifyShards::kOnce, RawShards::kInMemory);
      std::string columns;
      for (const MdsColumn& column : reader.index().shards[0].columns)
        columns += column.name + " " + column.encoding + ";";
      EXPECT_EQ(columns, tokens          ? "turns json;"
                         : conversations ? "messages json;"
                                         : "prompt str;response str;");
    }
  }
}

TEST_F(ConvertChatTest, JsonIsThatOfPython) {
  write_text(options_.inputs[0], lines(1, true));
  convert_chat(options_);
  MdsReader reader(read_mds_index(temp_ / "out/train"), VerifyShards::kOnce, RawShards::kInMemory);
  EXPECT_EQ(reader.read(0)[0],
            R"([{"role": "system", "content": ""}, {"role": "user", "content": "gr\u00f6\u00dfe\n\"0\""}, )"
            R"({"role": "assistant", "content": " \u043c\u043e\u0434\u0435\u043b\u044c\u007f\t0"}, )"
            R"({"role": "user", "content": "rate"}, )"
            R"({"role": "assistant", "content": " \u043c\u043e\u0434\u0435\u043b\u044c\u007f\t0"}])");
}

TEST_F(ConvertChatTest, BytesDoNotDependOnThreads) {
  write_text(options_.inputs[0], lines(300, true));
  options_.tokenizer = shape_.tokenizer;
  options_.splits.val_fraction = 0.25;
  options_.threads = 1;
  const ConvertResult one = convert_chat(options_);
  ASSERT_EQ(one.splits.size(), 2u);
  EXPECT_EQ(one.splits[0].samples, 225);
  EXPECT_EQ(one.splits[1].samples, 75);
  options_.splits.out_dir = temp_ / "again";
  options_.threads = 5;
  convert_chat(options_);
  EXPECT_EQ(files_of(temp_ / "again"), files_of(temp_ / "out"));
}

TEST_F(ConvertChatTest, TokensBelongToTheirTokenizer) {
  write_text(options_.inputs[0], lines(3, false));
  options_.tokenizer = shape_.tokenizer;
  convert_chat(options_);
  shape_.tokenizer = golden("tokenizer/whole.json");
  shape_.vocab_size = 100000;
  expect_error(ExitCode::kUnusable, {"is not the tokenizer that ", "out/train was made with"},
               [&] { batch_of(temp_ / "out/train"); });
}

TEST_F(ConvertChatTest, NamesTheLineThatIsWrong) {
  write_text(options_.inputs[0], lines(100, true) + "{}\n");
  expect_unusable({"rows.jsonl:121] must have exactly the key \"messages\""});
  write_text(options_.inputs[0], lines(2, true) + lines(1, false));
  expect_unusable({"rows.jsonl:4] is a prompt with a response, and the first line is a conversation",
                   "convert them apart, or to tokens with --tokenizer"});
  write_text(options_.inputs[0], "\n \n");
  expect_unusable({"rows.jsonl has no rows to convert"});
  options_.splits.val_fraction = 0.5;
  write_text(options_.inputs[0], lines(1, true));
  expect_error(ExitCode::kUsage, {"[data] 1 lines are too few for a share of 0.5 in val"},
               [&] { convert_chat(options_); });
  EXPECT_FALSE(std::filesystem::exists(temp_ / "out/train"));
}

TEST_F(ConvertChatTest, LeavesAnExistingSplitAlone) {
  write_text(temp_ / "out/train/index.json", "{}");
  write_text(options_.inputs[0], lines(3, false));
  expect_error(ExitCode::kUsage, {"out/train is already there"}, [&] { convert_chat(options_); });
  EXPECT_EQ(read_file(temp_ / "out/train/index.json"), "{}");
}

}  // namespace
}  // namespace tycho
