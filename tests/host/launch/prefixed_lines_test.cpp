// Lines with a mark, from streams cut anywhere.
#include "host/launch/prefixed_lines.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

TEST(PrefixedLinesTest, MarksWholeLinesWhereverTheyAreCut) {
  PrefixedLines lines("[rank 1] ");
  EXPECT_EQ(lines.add("one\ntw"), "[rank 1] one\n");
  EXPECT_EQ(lines.add(""), "");
  EXPECT_EQ(lines.add("o"), "");
  EXPECT_EQ(lines.add("\n\nthree\n"), "[rank 1] two\n[rank 1] \n[rank 1] three\n");
  EXPECT_EQ(lines.finish(), "");
}

TEST(PrefixedLinesTest, TheLastLineNeedsNoEnd) {
  PrefixedLines lines("> ");
  EXPECT_EQ(lines.add("a\nb"), "> a\n");
  EXPECT_EQ(lines.finish(), "> b\n");
  EXPECT_EQ(lines.finish(), "");
}

TEST(PrefixedLinesTest, ALineWithoutEndDoesNotGrowForever) {
  PrefixedLines lines("");
  size_t shown = 0;
  for (int i = 0; i < 100; ++i) shown += lines.add(std::string(4096, 'x')).size();
  EXPECT_GT(shown, size_t{300} << 10);
  EXPECT_LE(lines.finish().size(), (size_t{64} << 10) + 1);
}

}  // namespace
}  // namespace tycho
