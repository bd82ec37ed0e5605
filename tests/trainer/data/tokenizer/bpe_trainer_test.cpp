// Training merges, against what Hugging Face trains from the same text.
#include "trainer/data/tokenizer/bpe_trainer.h"

#include "tests/trainer/data/data_testing.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

const std::string kCorpus = golden("tokenizer/corpus.txt");

std::string train(const std::vector<std::string>& inputs, const BpeTrainOptions& options) {
  return train_bpe(find_input_files(inputs, {}).files, options);
}

TEST(TrainBpeTest, JsonlTrainsOnItsTextAlone) {
  TempDir dir;
  const std::string corpus = read_file(kCorpus);
  Json line = {{"source", "somewhere"}, {"text", corpus}};
  write_text(dir / "a.jsonl", line.dump() + "\n");
  EXPECT_EQ(train({dir / "a.jsonl"}, {.vocab_size = 420, .whole_files = true}),
            read_file(golden("tokenizer/whole.json")));
}

TEST(TrainBpeTest, ARowIsOneTextAndATextFileOneForEachLine) {
  TempDir dir;
  const std::string corpus = "one\n\n\ntwo\n\n\none\n\n\ntwo\n\n\n";
  write_text(dir / "a.jsonl", Json({{"text", corpus}}).dump() + "\n");
  write_text(dir / "a.csv", "text\n\"" + corpus + "\"\n");
  write_text(dir / "a.txt", corpus);
  const BpeTrainOptions options{.vocab_size = 270};
  const std::string rows = train({dir / "a.jsonl"}, options), lines = train({dir / "a.txt"}, options);
  EXPECT_EQ(train({dir / "a.csv"}, options), rows);
  EXPECT_NE(rows.find("\"\u010a\u010a\""), std::string::npos) << "no token of two newlines";
  EXPECT_EQ(lines.find("\"\u010a\u010a\""), std::string::npos);
}

TEST(TrainBpeTest, ASmallVocabularyHasTheBytesThatTheTextsUse) {
  TempDir dir;
  write_text(dir / "a.txt", "to be, or not to be");
  write_text(dir / "tokenizer.json",
             train({dir / "a.txt"}, {.vocab_size = 10}));  // b e n o r t, comma, space
  const auto tokenizer = load_tokenizer(dir / "tokenizer.json");
  EXPECT_EQ(tokenizer->size(), 10);
  const std::vector<int32_t> ids = tokenizer->encode("not to be");
  EXPECT_EQ(ids.size(), 9U);
  EXPECT_EQ(tokenizer->decode(ids), "not to be");
  EXPECT_EQ(tokenizer->encode("x"), std::vector<int32_t>{tokenizer->find("<unk>")});
  EXPECT_EQ(tokenizer->info().unknown, "<unk>");
  // With room left, pairs of bytes merge as ever.
  write_text(dir / "larger.json", train({dir / "a.txt"}, {.vocab_size = 12}));
  EXPECT_EQ(load_tokenizer(dir / "larger.json")->size(), 12);
}

TEST(TrainBpeTest, WritesTheFileThatHuggingFaceWrites) {
  EXPECT_EQ(train({kCorpus}, {.vocab_size = 500}), read_file(golden("tokenizer/lines.json")));
  EXPECT_EQ(train({kCorpus}, {.vocab_size = 420, .whole_files = true}),
            read_file(golden("tokenizer/whole.json")));
}

TEST(TrainBpeTest, ThreadsAndChunksDoNotMatter) {
  TempDir dir;
  std::string text = read_file(kCorpus);
  while (text.size() < 5 << 20) text += text;  // several chunks
  write_text(dir / "large.txt", text);
  const std::string one = train({dir / "large.txt"}, {.vocab_size = 600, .threads = 1});
  EXPECT_EQ(train({dir / "large.txt"}, {.vocab_size = 600, .threads = 4}), one);
}

TEST(TrainBpeTest, StopsWhereNoPairIsFrequentEnough) {
  TempDir dir;
  write_text(dir / "a.txt", "abab abab");
  const std::string text = train({dir / "a.txt"}, {.vocab_size = 1000, .special_tokens = {"<s>", "</s>"}});
  write_text(dir / "tokenizer.json", text);
  const auto tokenizer = load_tokenizer(dir / "tokenizer.json");
  EXPECT_EQ(tokenizer->find("</s>"), 1);
  EXPECT_EQ(tokenizer->size(), 256 + 2 + 2);  // ab, abab
  EXPECT_NE(tokenizer->find("abab"), -1);
}

TEST(TrainBpeTest, ReportsItsProgress) {
  std::vector<std::string> phases;
  double last = 0;
  train({kCorpus}, {.vocab_size = 450, .progress = [&](double fraction, const std::string& phase) {
                      EXPECT_TRUE(fraction >= 0 && fraction <= 1);
                      last = fraction;
                      if (phases.empty() || phases.back() != phase) phases.push_back(phase);
                    }});
  EXPECT_EQ(phases, (std::vector<std::string>{"count words", "merge"}));
  EXPECT_GT(last, 0.5);
}

TEST(TrainBpeTest, RefusesWhatCannotWork) {
  TempDir dir;
  write_text(dir / "empty.txt", "");
  write_text(dir / "abc.txt", "abcabc");
  expect_error(ExitCode::kUsage,
               {"expected a vocabulary of 5 or more, got 4", "3 different bytes", "from 257 on"},
               [&] { train({dir / "abc.txt"}, {.vocab_size = 4}); });
  expect_error(ExitCode::kUnusable, {"no text"}, [&] { train({dir / "empty.txt"}, {}); });
  expect_error(ExitCode::kUnusable, {"none.txt"}, [&] { train({dir / "none.txt"}, {}); });
}

}  // namespace
}  // namespace tycho
