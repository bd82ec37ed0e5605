// Regular expressions as Oniguruma reads them.
#include "trainer/data/tokenizer/patterns/split_regex.h"

#include <gtest/gtest.h>

#include "trainer/base/error.h"
#include "trainer/data/tokenizer/patterns/piece_scanner.h"

namespace tycho {
namespace {

std::vector<std::string> matches(const char* pattern, std::string_view text) {
  const SplitRegex regex(pattern);
  SplitRegex::Effort effort;
  std::vector<std::string> found;
  for (size_t from = 0; from <= text.size();) {
    const auto match = regex.find(text, from, effort);
    if (!match) break;
    found.emplace_back(text.substr(match->begin, match->end - match->begin));
    from = match->end > match->begin ? match->end : match->end + 1;
  }
  return found;
}

using Found = std::vector<std::string>;

TEST(SplitRegexTest, TakesTheFirstAlternativeThatLeadsToAMatch) {
  EXPECT_EQ(matches("a|ab", "ab"), (Found{"a"}));
  EXPECT_EQ(matches("(?:a|ab)c", "abc"), (Found{"abc"}));
  EXPECT_EQ(matches("(?>a|ab)c", "abcac"), (Found{"ac"})) << "what is atomic is not taken back";
}

TEST(SplitRegexTest, RepeatsAsOftenAsAsked) {
  EXPECT_EQ(matches("a{2}", "aaaaa"), (Found{"aa", "aa"}));
  EXPECT_EQ(matches("a{,2}b", "aaab b"), (Found{"aab", "b"}));
  EXPECT_EQ(matches("a+?b", "aab"), (Found{"aab"}));
  EXPECT_EQ(matches("a++a", "aaa"), Found{});
  EXPECT_EQ(matches("(?:ab){1,2}?c", "ababc"), (Found{"ababc"}));
  EXPECT_EQ(matches("(?:a?)*b", "aab"), (Found{"aab"})) << "repeating nothing ends";
  EXPECT_EQ(matches("é*x", "ééx"), (Found{"ééx"}));
  EXPECT_EQ(matches("[é-ü]+é", "éüéé"), (Found{"éüéé"}));
  EXPECT_EQ(matches("a{x", "a{x"), (Found{"a{x"})) << "no interval";
}

TEST(SplitRegexTest, KnowsSetsAndCategories) {
  EXPECT_EQ(matches(R"([^\s\p{L}]+)", "a1_ é-"), (Found{"1_", "-"}));
  EXPECT_EQ(matches(R"(\p{Lu}\p{^Lu})", "aBcDE"), (Found{"Bc"}));
  EXPECT_EQ(matches(R"([a-c[x-z]\-])", "a-dz"), (Found{"a", "-", "z"}));
  EXPECT_EQ(matches(R"([\w]+)", "a1_½ ⅷⓐ"), (Found{"a1_", "ⅷⓐ"}));
  EXPECT_EQ(matches(R"(\w+)", "a1_½ ⅷⓐ"), (Found{"a1_½", "ⅷⓐ"})) << "another set than inside of []";
  EXPECT_EQ(matches(R"(\x41\u0042\x{43})", "ABC"), (Found{"ABC"}));
  EXPECT_EQ(matches(".", "a\n\xff"), (Found{"a", "\xff"})) << "a byte that is no UTF-8 is a character";
}

TEST(SplitRegexTest, KnowsCasesAndAnchors) {
  EXPECT_EQ(matches("(?i:'s)x|(?i)k", "'Sx 'ſx K\u212A"), (Found{"'Sx", "'ſx", "K", "\u212A"}));
  EXPECT_EQ(matches(R"(\s+(?!\S))", "a  b  "), (Found{" ", "  "}));
  EXPECT_EQ(matches("a(?=b)", "abac"), (Found{"a"}));
  EXPECT_EQ(matches("^.", "ab\ncd"), (Found{"a", "c"})) << "of every line";
  EXPECT_EQ(matches(R"(.\Z)", "ab\n"), (Found{"b"}));
  EXPECT_EQ(matches(R"(\A.|.\z)", "abc"), (Found{"a", "c"}));
}

TEST(SplitRegexTest, TheScannersCutAsTheirPatternsDo) {
  std::string text;
  const std::vector<std::string> parts = {" ",  "  ", "\n", "\r\n", "'s", "'LL", "a",  "É",
                                          "字", "1",  "２", "-",    "ſ",  "'",   "\t", "\xff"};
  uint32_t state = 9;
  for (int i = 0; i < 3000; ++i) text += parts[((state = state * 1664525 + 1013904223) >> 8) % parts.size()];
  for (const auto pattern : {SplitPattern::kGpt2, SplitPattern::kLlama3, SplitPattern::kQwen2}) {
    Found pieces;
    PieceScanner scanner(pattern, text);
    for (auto piece = scanner.next(); !piece.empty(); piece = scanner.next()) pieces.emplace_back(piece);
    EXPECT_EQ(pieces, matches(pattern_text(pattern), text));
  }
}

TEST(SplitRegexTest, SaysWhereAPatternIsWrong) {
  const auto refuses = [](const char* pattern, std::string_view message) {
    try {
      compile_regex(pattern);
      ADD_FAILURE() << pattern;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUnusable);
      EXPECT_NE(std::string_view(error.what()).find(message), std::string_view::npos) << error.what();
    }
  };
  refuses("ab(c", "a ( without ) at byte 4");
  refuses("a)", "a ) without ( at byte 1");
  refuses("[abc", "a [ without ]");
  refuses("+a", "nothing to repeat");
  refuses(R"(\1)", R"(\1 is not supported)");
  refuses("(?<!a)b", "\"(?<!\" is not supported");
  refuses(R"(\p{Greek})", R"(\p{Greek} (only general categories are) is not supported)");
  refuses(std::string(200, '(').c_str(), "nested more than 100 deep");
  refuses("(?:(?:(?:a|b){500}){500}){500}", "too large");
}

TEST(SplitRegexTest, SearchingTakesTimeInProportionToTheText) {
  const SplitRegex hard("(?:a|a)*b");
  SplitRegex::Effort effort;
  EXPECT_THROW(hard.find(std::string(60, 'a'), 0, effort), Error);
  const SplitRegex easy(pattern_text(SplitPattern::kGpt2));
  SplitRegex::Effort small;
  const std::string text = "a" + std::string(100'000, ' ') + "b";
  for (size_t from = 0; const auto match = easy.find(text, from, small);) {
    if (match->end == text.size()) break;
    from = match->end;
  }
  EXPECT_LT(small.steps, 20 * text.size());
}

}  // namespace
}  // namespace tycho
