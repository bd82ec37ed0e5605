// Messages with and without a place before them.
#include "trainer/base/text/without_place.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

TEST(WithoutPlace, CutsOnlyThePlaceThatTheMessageBeginsWith) {
  EXPECT_EQ(without_place("[checkpoint] cannot write a: no space left"), "cannot write a: no space left");
  EXPECT_EQ(without_place("cannot read x[3] of a list"), "cannot read x[3] of a list");
  EXPECT_EQ(without_place("[a] [b] c"), "[b] c");
  EXPECT_EQ(without_place("[1,2]"), "[1,2]");
  EXPECT_EQ(without_place(""), "");
}

}  // namespace
}  // namespace tycho
