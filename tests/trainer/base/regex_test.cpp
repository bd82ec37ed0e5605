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

TEST(Regex, AnInvalidPatternMatchesNothingAndSaysWhy) {
  const Regex broken("layers.(1");
  EXPECT_NE(broken.problem().find('('), std::string::npos) << broken.problem();
  EXPECT_FALSE(broken.is_found_in("layers.(1"));
  EXPECT_FALSE(broken.matches_all_of(""));
  EXPECT_EQ(broken.replaced_in("same", "x"), "same");
}

// std::regex took exponential time for the first, and overflowed the stack with the second.
TEST(Regex, NoPatternTakesMoreThanLinearTime) {
  const std::string many(100'000, 'a');
  EXPECT_FALSE(Regex("^(a+)+$").is_found_in(many + "!"));
  EXPECT_TRUE(Regex("^(a|b)*$").is_found_in(many));
  EXPECT_FALSE(Regex("(x+x+)+y").is_found_in(std::string(100'000, 'x')));
}

TEST(Regex, RefusesPatternsThatAreTooLongOrTooBig) {
  EXPECT_NE(Regex(std::string(5000, 'a')).problem().find("longer than"), std::string::npos);
  const Regex big("((a{1000}){1000}){1000}");
  EXPECT_NE(big.problem(), "");
  EXPECT_FALSE(big.is_found_in("a"));
  EXPECT_NE(Regex("(?=lookahead)").problem(), "");
}

}  // namespace
}  // namespace tycho
