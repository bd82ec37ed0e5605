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
  expect_error(ExitCode::kUsage, {"at least 257", "100"}, [&] { train({kCorpus}, {.vocab_size = 100}); });
  expect_error(ExitCode::kUnusable, {"no text"}, [&] { train({dir / "empty.txt"}, {}); });
  expect_error(ExitCode::kUnusable, {"none.txt"}, [&] { train({dir / "none.txt"}, {}); });
}

}  // namespace
}  // namespace tycho
