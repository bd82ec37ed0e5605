// Counts of files of texts, against texts that the test knows.
#include "trainer/data/prepare/text_stats.h"

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/base/random/philox.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

TEST(TextStatsTest, CountsDocumentsOfAllKinds) {
  const TempDir temp;
  write_text(temp / "a.txt", "größe\r\n");
  write_text(temp / "b.jsonl", "{\"text\": \"one\"}\n\n{\"text\": \"\"}\n{\"text\": \"one\"}\n");
  write_text(temp / "c.csv", "id,text\n1,one\n2,\"two words\"\n");
  write_text(temp / "d.txt", std::string(2'500'000, 'x'));  // in pieces
  write_text(temp / "e.txt", std::string(2'500'000, 'x'));
  write_text(temp / "f.txt", "");
  const InputRules rules;
  const InputFiles files = find_input_files({temp.path()}, rules);
  const TextStats stats = text_stats(files, rules, nullptr, 1);
  EXPECT_EQ(stats.files, 6);
  EXPECT_EQ(stats.documents, 9);
  EXPECT_EQ(stats.empty_documents, 2);
  EXPECT_EQ(stats.bytes(), 8 + 3 + 3 + 3 + 9 + 2 * 2'500'000);
  EXPECT_EQ(stats.document_bytes.quantile(1), 2'500'000);
  EXPECT_EQ(stats.duplicates_of_one_in, 1);
  EXPECT_DOUBLE_EQ(stats.duplicate_share, 4.0 / 9);  // two of "one", one of the long ones, one empty
  EXPECT_EQ(stats.tokens, 0);
}

TEST(TextStatsTest, TokensAreThoseOfTheTokenizer) {
  const TempDir temp;
  write_text(temp / "a.jsonl", "{\"text\": \"one of two\"}\n{\"text\": \"größe\"}\n");
  write_text(temp / "b.txt", "three\nlines\n");
  const auto tokenizer = load_tokenizer(golden("tokenizer/lines.json"));
  const InputRules rules;
  const TextStats stats = text_stats(find_input_files({temp.path()}, rules), rules, tokenizer.get(), 2);
  EXPECT_EQ(stats.tokens, std::ssize(tokenizer->encode("one of two")) +
                              std::ssize(tokenizer->encode("größe")) +
                              std::ssize(tokenizer->encode("three\nlines\n")));
  write_text(temp / "c.jsonl", "{\"text\": 1}\n");
  expect_error(ExitCode::kUnusable, {"c.jsonl:1", "must be a string"},
               [&] { text_stats(find_input_files({temp.path()}, rules), rules, nullptr, 1); });
}

TEST(TextStatsTest, DuplicatesOfManyDocumentsAreEstimatedFromSomeOfThem) {
  constexpr int64_t kDocuments = 60'000;
  DuplicateCounter exact, estimate(1000);
  for (int64_t i = 0; i < kDocuments; ++i) {
    const auto words = philox(3, static_cast<uint64_t>(i % 40'000));  // a third comes twice
    const uint64_t hash = uint64_t{words[0]} << 32 | words[1];
    exact.add(hash);
    estimate.add(hash);
  }
  EXPECT_EQ(exact.looks_at_one_in(), 1);
  EXPECT_DOUBLE_EQ(exact.share(), 20'000.0 / kDocuments);
  EXPECT_GE(estimate.looks_at_one_in(), 40);
  EXPECT_NEAR(estimate.share(), exact.share(), 0.06);  // of some 600: a standard deviation is 0.01
  EXPECT_EQ(DuplicateCounter().share(), 0);
}

}  // namespace
}  // namespace tycho
