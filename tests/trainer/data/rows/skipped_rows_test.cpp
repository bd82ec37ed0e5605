// Rows that cannot be used are left out where the user asks for it: what is left is what files without them
// give.
#include "trainer/data/rows/skipped_rows.h"

#include <numeric>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/loader/text_dataset.h"
#include "trainer/data/prepare/convert.h"
#include "trainer/data/prepare/convert_chat.h"
#include "trainer/data/prepare/text_stats.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

TEST(SkippedRowsTest, KeepsTheFirstReasonsAndCountsAll) {
  SkippedRows rows, more;
  EXPECT_EQ(rows.text(), "");
  rows.add("a");
  EXPECT_EQ(rows.text(), "1 row cannot be used and is skipped, such as a");
  for (const char* reason : {"b", "c", "d"}) more.add(reason);
  rows.add(more);
  EXPECT_EQ(rows.text(), "4 rows cannot be used and are skipped, such as a; b; c");
}

/// The same rows in files with and without bad ones between them.
class SkippingTest : public ::testing::Test {
 protected:
  SkippingTest() {
    const std::string corpus = read_file(golden("tokenizer/corpus.txt"));
    std::string good_lines, lines = "{\"text\": \"cut off\n", good_rows = "id,text\n", rows = good_rows;
    for (int i = 0; i < 400; ++i) {
      std::string text = corpus.substr(0, corpus.find('\n', static_cast<size_t>(40 + 13 * i)));
      const std::string line = Json{{"text", text}}.dump() + "\n";
      good_lines += line;
      lines += line;
      if (i % 7 == 3) lines += kBadLines[static_cast<size_t>(i / 7) % kBadLines.size()] + "\n";
      const std::string row = fmt::format("{},row {}\n", i, i);
      good_rows += row;
      rows += row;
      if (i % 11 == 5) rows += i % 2 == 1 ? "one value\n" : "5,caf\xE9\n";
    }
    write_text(temp_ / "good/a.jsonl", good_lines);
    write_text(temp_ / "bad/a.jsonl", lines + "{\"text\": \"the last line is cut o");
    write_text(temp_ / "good/b.csv", good_rows);
    write_text(temp_ / "bad/b.csv", rows);
  }

  static constexpr int64_t kNumBad = 1 + 57 + 1 + 36;
  const std::vector<std::string> kBadLines = {"{\"text\": null}",
                                              "{\"other\": \"x\"}",
                                              "{\"text\": 5}",
                                              "[]",
                                              "{\"text\": \"\xFF\"}",
                                              "null",
                                              "{",
                                              "}"};

  ConvertOptions options(const std::string& from, int threads = 3) const {
    ConvertOptions options{.inputs = {temp_ / from},
                           .tokenizer = golden("tokenizer/whole.json"),
                           .out_dir = temp_ / (from + "-out" + std::to_string(threads)),
                           .val_fraction = 0.25,
                           .concat_tokens = 32,
                           .eos_text = "<|endoftext|>",
                           .threads = threads};
    if (from != "good") options.rules.bad_rows = BadRows::kSkip;
    return options;
  }
  static std::map<std::string, std::string> files_of(const std::string& dir) {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir))
      if (entry.is_regular_file())
        files[std::filesystem::relative(entry.path(), dir)] = read_file(entry.path().string());
    return files;
  }

  TempDir temp_;
};

TEST_F(SkippingTest, AConversionWritesWhatItWritesWithoutBadRows) {
  const ConvertResult good = convert_text(options("good"));
  EXPECT_EQ(skipped_rows(good.splits), 0);
  EXPECT_TRUE(good.warnings.empty());
  for (const int threads : {1, 8}) {
    const ConvertResult result = convert_text(options("bad", threads));
    EXPECT_EQ(files_of(temp_ / ("bad-out" + std::to_string(threads))), files_of(temp_ / "good-out3"));
    EXPECT_EQ(skipped_rows(result.splits), kNumBad);
    ASSERT_EQ(result.warnings.size(), 1u);
    EXPECT_TRUE(result.warnings[0].starts_with(
        fmt::format("{} rows cannot be used and are skipped, such as [data] {}/bad/a.jsonl:1: not JSON",
                    kNumBad, temp_.path())))
        << result.warnings[0];
    EXPECT_NE(result.warnings[0].find("a.jsonl:6: field \"text\" must be a string, is null"),
              std::string::npos)
        << result.warnings[0];
  }
}

TEST_F(SkippingTest, WithoutThePolicyTheyAreAnError) {
  ConvertOptions strict = options("bad");
  strict.rules.bad_rows = BadRows::kError;
  expect_error(ExitCode::kUnusable, {"a.jsonl:1: not JSON"}, [&] { convert_text(strict); });
  strict.inputs = {temp_ / "bad/b.csv"};
  expect_error(ExitCode::kUnusable, {"b.csv:8 has 1 values"}, [&] { convert_text(strict); });
}

TEST_F(SkippingTest, RowsBehindTheLastDocumentThatIsWantedAreNotCounted) {
  ConvertOptions few = options("bad");
  few.val_fraction = 0;
  few.max_documents = 5;
  const ConvertResult result = convert_text(few);
  EXPECT_EQ(result.splits.at(0).documents, 5);
  EXPECT_EQ(result.splits[0].skipped_rows, 2);
}

TEST_F(SkippingTest, AFileWithoutAGoodRowIsAnErrorThatShowsOne) {
  write_text(temp_ / "none/a.jsonl", "{\"txt\": 1}\n{\"txt\": 2}\n");
  expect_error(ExitCode::kUnusable, {"no row can be used", "a.jsonl:1 has no field \"text\"", "--field NAME"},
               [&] { convert_text(options("none")); });
  TextConfig texts{.path = temp_ / "none/a.jsonl", .bad_rows = BadRows::kSkip, .eos_token_id = 0};
  const RowShape shape = {.seq_len = 32, .vocab_size = 512, .tokenizer = golden("tokenizer/whole.json")};
  expect_error(ExitCode::kUnusable, {"0 tokens", "2 rows cannot be used and are skipped", "has no field"},
               [&] { TextDataset(texts, shape); });
}

/// A text file is one document, and what is read in pieces cannot be left out afterwards.
TEST_F(SkippingTest, DamagedFilesAreStillErrors) {
  write_text(temp_ / "files/a.txt", "caf\xE9");
  expect_error(ExitCode::kUnusable, {"a.txt is not UTF-8 at byte 3"},
               [&] { convert_text(options("files")); });
  write_text(temp_ / "quotes/a.csv", "text\n\"a\"b\nc\n");
  expect_error(ExitCode::kUnusable, {"a.csv:2 continues after a closing quote"},
               [&] { convert_text(options("quotes")); });
}

TEST_F(SkippingTest, NullsOfParquetAreSkipped) {
  ConvertOptions parquet = options("parquet");
  parquet.inputs = {golden("parquet/nulls.parquet")};
  parquet.val_fraction = 0;
  parquet.concat_tokens = 2;
  const ConvertResult result = convert_text(parquet);
  const Json texts = Json::parse(read_file(golden("parquet/texts.json"))).at("nulls");
  int64_t good = 0;
  for (const Json& text : texts) good += text.is_string();
  EXPECT_GT(std::ssize(texts), good);
  EXPECT_EQ(result.splits.at(0).documents, good);
  EXPECT_EQ(result.splits[0].skipped_rows, std::ssize(texts) - good);
}

TEST_F(SkippingTest, StatsAndTrainingOfATokenizerCountThem) {
  const auto tokenizer = load_tokenizer(golden("tokenizer/whole.json"));
  const auto stats = [&](const std::string& from, BadRows policy) {
    const InputRules rules{.bad_rows = policy};
    return text_stats(find_input_files({temp_ / from}, rules), rules, tokenizer.get(), 2);
  };
  const TextStats good = stats("good", BadRows::kError), bad = stats("bad", BadRows::kSkip);
  EXPECT_EQ(bad.documents, good.documents);
  EXPECT_EQ(bad.bytes(), good.bytes());
  EXPECT_EQ(bad.tokens, good.tokens);
  EXPECT_EQ(bad.skipped.count, kNumBad);
  expect_error(ExitCode::kUnusable, {"a.jsonl:1: not JSON"}, [&] { stats("bad", BadRows::kError); });

  int64_t num_bad = 0;
  BpeTrainOptions training{.vocab_size = 300};
  const std::string wanted = train_bpe(find_input_files({temp_ / "good"}, {}).files, training);
  training.on_bad_row = [&](const std::string&) { ++num_bad; };
  EXPECT_EQ(train_bpe(find_input_files({temp_ / "bad"}, {}).files, training), wanted);
  EXPECT_EQ(num_bad, kNumBad);
}

TEST_F(SkippingTest, TextsThatARunTokenises) {
  const RowShape shape = {.seq_len = 32, .vocab_size = 512, .tokenizer = golden("tokenizer/whole.json")};
  const TextConfig good{.path = temp_ / "good", .eos_token_id = 0};
  TextConfig bad = good;
  bad.path = temp_ / "bad";
  bad.bad_rows = BadRows::kSkip;
  const TextDataset one(good, shape), other(bad, shape);
  ASSERT_EQ(one.num_rows(), other.num_rows());
  std::vector<uint32_t> rows(static_cast<size_t>(one.num_rows()));
  std::iota(rows.begin(), rows.end(), 0u);
  EXPECT_EQ(one.read_batch(rows, one.num_rows()).tokens, other.read_batch(rows, one.num_rows()).tokens);
  EXPECT_TRUE(one.warnings().empty());
  ASSERT_EQ(other.warnings().size(), 1u);
  EXPECT_TRUE(
      other.warnings()[0].starts_with(fmt::format("of {}/bad, {} rows cannot", temp_.path(), kNumBad)));
}

TEST_F(SkippingTest, ARowThatTheTokenizerCannotCutIsNamedOrSkipped) {
  Json tokenizer = Json::parse(read_file(golden("tokenizer/whole.json")));
  tokenizer["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Split"}, {"pattern", {{"Regex", "(a+)+b"}}}, {"behavior", "Isolated"}},
        {{"type", "ByteLevel"}, {"use_regex", false}, {"add_prefix_space", false}}}}};
  write_text(temp_ / "slow.json", tokenizer.dump());
  const std::string slow(39, 'a');
  write_text(temp_ / "slow/a.jsonl",
             "{\"text\": \"one\"}\n{\"text\": \"" + slow + "\"}\n{\"text\": \"two\"}\n");
  write_text(temp_ / "slow/b.csv", "text\nthree\n" + slow + "\nfour\n");
  ConvertOptions rows = options("slow");
  rows.tokenizer = temp_ / "slow.json";
  rows.val_fraction = 0;
  rows.concat_tokens = 2;
  const ConvertResult result = convert_text(rows);
  EXPECT_EQ(result.splits.at(0).documents, 4);
  EXPECT_EQ(result.splits[0].skipped_rows, 2);
  EXPECT_NE(result.warnings.at(0).find("a.jsonl:2: [regex] the tokenizer's pattern takes too long"),
            std::string::npos)
      << result.warnings[0];
  EXPECT_NE(result.warnings[0].find("b.csv, row 2: [regex]"), std::string::npos) << result.warnings[0];
  rows.rules.bad_rows = BadRows::kError;
  rows.out_dir = temp_ / "strict";
  expect_error(ExitCode::kUnusable, {"a.jsonl:2", "takes too long"}, [&] { convert_text(rows); });
  write_text(temp_ / "slow.txt", slow);
  rows.inputs = {temp_ / "slow.txt"};
  expect_error(ExitCode::kUnusable, {"slow.txt", "takes too long"}, [&] { convert_text(rows); });

  write_text(temp_ / "chat.jsonl", "{\"prompt\": \"one\", \"response\": \"two\"}\n{\"prompt\": \"" + slow +
                                       "\", \"response\": \"three\"}\n");
  ChatConfig chat{.path = temp_ / "chat.jsonl", .eos_token_id = 0};
  const RowShape shape = {.seq_len = 32, .vocab_size = 512, .tokenizer = temp_ / "slow.json"};
  expect_error(ExitCode::kUnusable, {"chat.jsonl:2", "takes too long"},
               [&] { ChatDataset(chat, shape, never_stopped); });
  chat.bad_rows = BadRows::kSkip;
  EXPECT_EQ(ChatDataset(chat, shape, never_stopped).num_rows(), 1);
}

/// Prompts with responses, with what LLM Foundry drops (an empty one) and with other mistakes between them.
class SkippingChatTest : public ::testing::Test {
 protected:
  SkippingChatTest() {
    std::string good, bad = "{\"prompt\": \"\", \"response\": \"x\"}\n[]\n";
    for (int i = 0; i < 300; ++i) {
      const std::string line =
          Json{{"prompt", fmt::format("question {}", i)}, {"response", fmt::format(" answer {}", i)}}.dump() +
          "\n";
      good += line;
      bad += line;
      if (i % 4 == 0) bad += "{\"prompt\": \"why\", \"response\": \"\"}\n";
      if (i % 50 == 7) bad += "{\"prompt\": \"why\", \"response\n";
      if (i % 50 == 9) bad += "{\"prompt\": \"why\", \"response\": null}\n";
    }
    write_text(temp_ / "good.jsonl", good);
    write_text(temp_ / "bad.jsonl", bad);
  }
  static constexpr int64_t kNumBad = 2 + 75 + 6 + 6;
  TempDir temp_;
  const RowShape shape_{.seq_len = 64, .vocab_size = 512, .tokenizer = golden("tokenizer/lines.json")};
};

TEST_F(SkippingChatTest, ARunTrainsOnTheOthers) {
  const ChatConfig good{.path = temp_ / "good.jsonl"};
  ChatConfig bad = good;
  bad.path = temp_ / "bad.jsonl";
  expect_error(ExitCode::kUnusable, {"bad.jsonl:1", "prompt is empty"},
               [&] { ChatDataset(bad, shape_, never_stopped); });
  bad.bad_rows = BadRows::kSkip;
  const ChatDataset one(good, shape_, never_stopped), other(bad, shape_, never_stopped);
  ASSERT_EQ(one.num_rows(), 300);
  ASSERT_EQ(other.num_rows(), 300);
  std::vector<uint32_t> rows(300);
  std::iota(rows.begin(), rows.end(), 0u);
  EXPECT_EQ(one.read_batch(rows, 300).tokens, other.read_batch(rows, 300).tokens);
  ASSERT_EQ(other.warnings().size(), 1u);
  EXPECT_TRUE(other.warnings()[0].starts_with(fmt::format(
      "of {}, {} rows cannot be used and are skipped, such as [{}:1]", bad.path, kNumBad, bad.path)))
      << other.warnings()[0];

  write_text(temp_ / "none.jsonl", "{}\n[]\n");
  bad.path = temp_ / "none.jsonl";
  expect_error(ExitCode::kUnusable, {"no row of", "none.jsonl can be used", "none.jsonl:1"},
               [&] { ChatDataset(bad, shape_, never_stopped); });
}

TEST_F(SkippingChatTest, AConversionWritesTheOthers) {
  const auto convert = [&](const std::string& name, BadRows policy, const std::string& tokenizer) {
    ConvertChatOptions options{
        .inputs = {temp_ / (name + ".jsonl")}, .tokenizer = tokenizer, .bad_rows = policy};
    options.splits.out_dir = temp_ / (name + (tokenizer.empty() ? "-texts" : "-tokens"));
    options.splits.val_fraction = 0.1;
    options.splits.size_limit = 3000;
    return convert_chat(options);
  };
  for (const std::string& tokenizer : {std::string(), shape_.tokenizer}) {
    expect_error(ExitCode::kUnusable, {"bad.jsonl:1"}, [&] { convert("bad", BadRows::kError, tokenizer); });
    const ConvertResult good = convert("good", BadRows::kError, tokenizer);
    const ConvertResult bad = convert("bad", BadRows::kSkip, tokenizer);
    EXPECT_EQ(skipped_rows(bad.splits), kNumBad);
    ASSERT_EQ(bad.splits.size(), good.splits.size());
    for (size_t i = 0; i < good.splits.size(); ++i) {
      EXPECT_EQ(bad.splits[i].documents, good.splits[i].documents);
      for (const auto& entry : std::filesystem::directory_iterator(good.splits[i].dir))
        EXPECT_EQ(read_file(bad.splits[i].dir + "/" + entry.path().filename().string()),
                  read_file(entry.path()))
            << entry.path();
    }
  }
  write_text(temp_ / "none.jsonl", "{}\n[]\n");
  expect_error(ExitCode::kUnusable, {"has no rows to convert", "2 rows cannot be used", "none.jsonl:1"},
               [&] { convert("none", BadRows::kSkip, ""); });
}

}  // namespace
}  // namespace tycho
