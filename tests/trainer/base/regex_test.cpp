// Regular expressions.
#include "trainer/base/regex.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

TEST(Regex, FindsMatchesAndReplaces) {
  const Regex number("[0-9]+");
  EXPECT_EQ(number.problem(), "");
  EXPECT_TRUE(number.is_found_in("layers.12.weight"));
  EXPECT_FALSE(number.is_found_in("head.weight"));
  EXPECT_TRUE(number.matches_all_of("12"));
  EXPECT_FALSE(number.matches_all_of("layers.12"));
  EXPECT_EQ(number.replaced_in("layers.12.part.3", "*"), "layers.*.part.*");
}

TEST(Regex, ATextThatIsNoneMatchesNothingAndSaysWhy) {
  const Regex broken("layers.(1");
  EXPECT_NE(broken.problem().find('('), std::string::npos) << broken.problem();
  EXPECT_FALSE(broken.is_found_in("layers.(1"));
  EXPECT_FALSE(broken.matches_all_of(""));
  EXPECT_EQ(broken.replaced_in("same", "x"), "same");
}

}  // namespace
}  // namespace tycho
