// Python's str methods, against what Python 3.11 gave.
#include "trainer/tasks/python_text.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

TEST(PythonText, StripsUnicodeWhiteSpace) {
  EXPECT_EQ(python_strip(" \t a b\u00a0\u2003\x1c\n"), "a b");
  EXPECT_EQ(python_rstrip(" a\u3000"), " a");
  EXPECT_EQ(python_strip("\u200ba"), "\u200ba");  // no space to Python
  EXPECT_EQ(python_strip(" \u2028 "), "");
}

TEST(PythonText, SplitsAtRunsOfWhiteSpace) {
  EXPECT_EQ(python_split("  a\x85"
                         "b "),
            (std::vector<std::string>{"a\x85"
                                      "b"}));  // a lone byte is no text
  EXPECT_EQ(python_split("  a\u0085b\u1680 c "), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(python_split(" \n ").empty());
}

TEST(PythonText, LowersSigmaByItsPlace) {
  EXPECT_EQ(python_lower("ΣΑΣ Σ ΑΣ. ΑΣ'Α"), "σας σ ας. ασ'α");
  EXPECT_EQ(python_lower("İSTANBUL ÉÇOLE ẞ"), "i\u0307stanbul éçole ß");
}

TEST(PythonText, RemovesWordsThatStandAlone) {
  EXPECT_EQ(without_words("a theatre the an_ an", {"a", "an", "the"}), "  theatre   an_  ");
  EXPECT_EQ(without_words("á a\u0301", {"a"}),
            "á  \u0301");  // a combining mark is no part of a word to Python
}

}  // namespace
}  // namespace tycho
