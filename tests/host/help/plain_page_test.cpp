// Pages of docs/ as a terminal shows them.
#include "host/help/plain_page.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

TEST(PlainPage, UnderlinesHeadingsAndWrapsParagraphs) {
  EXPECT_EQ(
      plain_page("# Data\n\nSome **bold** words, `a **b** c` and a\n[link](x.md#y) to it.\n\n## More\n", 24),
      "Data\n====\n\nSome bold words, `a\n**b** c` and a link to\nit.\n\nMore\n----\n");
  EXPECT_EQ(plain_page("see [it](https://a.b/c)\n", 80), "see it <https://a.b/c>\n");
}

TEST(PlainPage, KeepsCodeAsItIs) {
  EXPECT_EQ(plain_page("Do:\n\n```sh\ntycho run  x.lua   # a | b **c** [d](e) and far more than the "
                       "columns\n\n# no\n```\n",
                       20),
            "Do:\n\n    tycho run  x.lua   # a | b **c** [d](e) and far more than the columns\n\n    # no\n");
}

TEST(PlainPage, HangsTheLinesOfLists) {
  EXPECT_EQ(plain_page("- one two three\n  four\n- five\n12. six seven eight\n", 12),
            "- one two\n  three four\n- five\n12. six\n    seven\n    eight\n");
}

TEST(PlainPage, FitsTablesIntoTheColumns) {
  EXPECT_EQ(plain_page("| key | what |\n|---|---|\n| `a\\|b` | **one** two three |\n| c | é |\n", 19),
            "key    what\n-----  ------------\n`a|b`  one two\n       three\nc      é\n");
  EXPECT_EQ(plain_page("| | |\n|---|---|\n| a | b |\n", 80), "a  b\n") << "a header without words";
  EXPECT_EQ(plain_page("| aaaaaaaaaaaaaaaaaaaa | b |\n|---|---|\n", 15).find("aaaaaaaaaaaaaaaaaaaa"),
            std::string::npos)
      << "a long word is cut";
}

TEST(PlainPage, LeavesOutComments) {
  EXPECT_EQ(plain_page("a\n\n<!-- not run: why -->\nb\n<!--\nc\n-->\nd\n", 80), "a\n\nb d\n");
}

TEST(PlainPage, TakesBrokenPagesAsTheyCome) {
  EXPECT_EQ(plain_page("", 80), "");
  EXPECT_EQ(plain_page("[a](b\n", 80), "[a](b\n");
  EXPECT_EQ(plain_page("```\nopen", 80), "    open\n");
  EXPECT_EQ(plain_page("#\n|\n", 80), "\n");
}

}  // namespace
}  // namespace tycho
