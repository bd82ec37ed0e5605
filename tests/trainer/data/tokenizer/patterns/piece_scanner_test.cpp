// GPT-2's pre-tokenisation.
#include "trainer/data/tokenizer/patterns/piece_scanner.h"

#include <string>
#include <vector>

#include "tests/trainer/data/data_testing.h"
#include "trainer/data/sources/safe_cut.h"

namespace tycho {
namespace {

std::vector<std::string> pieces(SplitPattern pattern, std::string_view text) {
  std::vector<std::string> list;
  PieceScanner scanner(pattern, text);
  for (auto piece = scanner.next(); !piece.empty(); piece = scanner.next()) list.emplace_back(piece);
  return list;
}

using Pieces = std::vector<std::string>;

TEST(PieceScannerTest, CutsAsGpt2Does) {
  EXPECT_EQ(
      pieces(SplitPattern::kGpt2, "Hello my friend, how's it  going?\n\n  x1"),
      (Pieces{"Hello", " my", " friend", ",", " how", "'s", " it", " ", " going", "?", "\n\n ", " x", "1"}));
  EXPECT_EQ(pieces(SplitPattern::kGpt2, "IT'S we've 'll'"),
            (Pieces{"IT", "'", "S", " we", "'ve", " '", "ll", "'"}));
  EXPECT_EQ(pieces(SplitPattern::kGpt2, "\t\tint"), (Pieces{"\t", "\t", "int"}));
  EXPECT_EQ(pieces(SplitPattern::kGpt2, "x  "), (Pieces{"x", "  "}));
  EXPECT_EQ(pieces(SplitPattern::kGpt2, "a\u00a0\u3000b"), (Pieces{"a", "\u00a0", "\u3000", "b"}));
}

TEST(PieceScannerTest, CutsAsLlama3Does) {
  EXPECT_EQ(pieces(SplitPattern::kLlama3, "IT'S 12345 (x) });\n\n  \n y"),
            (Pieces{"IT", "'S", " ", "123", "45", " (", "x", ")", " });\n\n", "  \n", " y"}));
  EXPECT_EQ(pieces(SplitPattern::kLlama3, "\tfoo !bar"), (Pieces{"\tfoo", " !", "bar"}));
}

TEST(PieceScannerTest, TakesBrokenUtf8AsVisibleCharacters) {
  EXPECT_EQ(pieces(SplitPattern::kGpt2, "a\xff\xfe b\xc3"), (Pieces{"a", "\xff\xfe", " b", "\xc3"}));
  EXPECT_EQ(pieces(SplitPattern::kGpt2, "\xed\xa0\x80\xf4\x90\x80\x80\xc0\xaf").size(),
            1u);  // surrogate, too large, too long
}

TEST(PieceScannerTest, PiecesPutTogetherAreTheText) {
  std::string text;
  uint32_t state = 1;
  for (int i = 0; i < 20000; ++i) text += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  for (const auto pattern : {SplitPattern::kNone, SplitPattern::kGpt2, SplitPattern::kLlama3}) {
    std::string joined;
    for (const auto& piece : pieces(pattern, text)) joined += piece;
    EXPECT_EQ(joined, text);
  }
}

TEST(FindSafeCutTest, PartsHaveThePiecesOfTheWhole) {
  const std::string text = read_file(testing::golden("tokenizer/corpus.txt"));
  for (const auto pattern : {SplitPattern::kGpt2, SplitPattern::kLlama3}) {
    const Pieces whole = pieces(pattern, text);
    for (size_t at = find_safe_cut(text, 0); at != std::string::npos; at = find_safe_cut(text, at + 40)) {
      Pieces parts = pieces(pattern, std::string_view(text).substr(0, at));
      for (auto& piece : pieces(pattern, std::string_view(text).substr(at))) parts.push_back(piece);
      ASSERT_EQ(parts, whole) << "cut at " << at;
    }
  }
  EXPECT_EQ(find_safe_cut("!!! ??? ", 0), std::string::npos);
  EXPECT_EQ(find_safe_cut("ab cd", 0), 2u);
}

}  // namespace
}  // namespace tycho
