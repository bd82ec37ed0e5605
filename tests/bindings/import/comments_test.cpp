// Which part of a line is a comment.
#include "bindings/import/comments.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

CommentLine line(const std::string& text) { return read_comments(text + "\n").at(0); }

TEST(Comments, StandAloneOrBehindData) {
  EXPECT_EQ(line("  # text").whole, "-- text");
  EXPECT_EQ(line("a: 1  # why").trailing, "-- why");
  EXPECT_EQ(line("a: 1").trailing, "");
  EXPECT_TRUE(line("  ").is_blank);
}

TEST(Comments, AreNotInsideWordsOrQuotes) {
  EXPECT_EQ(line("a: x#y").trailing, "");
  EXPECT_EQ(line("a: 'x # y'").trailing, "");
  EXPECT_EQ(line("a: \"x \\\" # y\" # z").trailing, "-- z");
  EXPECT_EQ(line("it's: a # b").trailing, "-- b");
}

TEST(Comments, NeverOpenALongComment) { EXPECT_EQ(line("#[[ x").whole, "-- [[ x"); }

}  // namespace
}  // namespace tycho
