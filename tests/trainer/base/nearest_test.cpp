// Did-you-mean: typing errors are found, far names are not offered.
#include "trainer/base/nearest.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

using Names = std::vector<std::string>;
const Names kKnown = {"lr",     "betas",        "eps",         "weight_decay",
                      "warmup", "global_batch", "micro_batch", "seq_len"};

TEST(Nearest, FindsTypos) {
  EXPECT_EQ(nearest("betaz", kKnown), Names{"betas"});
  EXPECT_EQ(nearest("rl", kKnown), Names{"lr"});  // swapped letters are one error
  EXPECT_EQ(nearest("seqlen", kKnown), Names{"seq_len"});
  EXPECT_EQ(nearest("weigth_decay", kKnown), Names{"weight_decay"});
  EXPECT_EQ(nearest("LR", kKnown), Names{"lr"});
}

TEST(Nearest, PrefersTheSameFirstLetter) { EXPECT_EQ(nearest("sqr", {"qr", "sqrt"}), (Names{"sqrt", "qr"})); }

TEST(Nearest, FindsLongerAndShorterForms) {
  EXPECT_EQ(nearest("warmup_steps", kKnown), Names{"warmup"});
  EXPECT_EQ(nearest("batch", kKnown), (Names{"micro_batch", "global_batch"}));
}

TEST(Nearest, GivesThreeAtMostClosestFirst) {
  EXPECT_EQ(nearest("abcd", {"abxy", "abc", "abcd1", "abcde", "abd", "bcd"}),
            (Names{"abc", "abcd1", "abcde"}));
}

TEST(Nearest, SuggestsNothingWhenNothingIsClose) {
  EXPECT_TRUE(nearest("zzz", kKnown).empty());
  EXPECT_TRUE(nearest("", kKnown).empty());
  EXPECT_TRUE(nearest("x", {}).empty());
  EXPECT_TRUE(nearest(std::string(100000, 'q'), kKnown).empty());
  EXPECT_EQ(did_you_mean("zzz", kKnown), "");
}

TEST(Nearest, WritesASentence) {
  EXPECT_EQ(did_you_mean("betaz", kKnown), "; did you mean \"betas\"?");
  EXPECT_EQ(did_you_mean("batch", kKnown), "; did you mean \"micro_batch\" or \"global_batch\"?");
  EXPECT_EQ(did_you_mean("abcd", {"abc", "abcd1", "abd"}), "; did you mean \"abc\", \"abcd1\" or \"abd\"?");
}

}  // namespace
}  // namespace tycho
