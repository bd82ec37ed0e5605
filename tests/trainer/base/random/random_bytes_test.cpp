// Bytes of the kernel: as many as asked for, and never the same.
#include "trainer/base/random/random_bytes.h"

#include <gtest/gtest.h>

#include <set>

namespace tycho {
namespace {

TEST(RandomBytes, AreAsManyAsAskedForAndNeverTheSame) {
  EXPECT_EQ(random_bytes(0), "");
  EXPECT_EQ(random_bytes(1000).size(), 1000U);
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random_bytes(16));
  EXPECT_EQ(seen.size(), 1000U);
}

TEST(RandomBytes, AsTextAreHexDigits) {
  const std::string text = random_hex(16);
  EXPECT_EQ(text.size(), 32U);
  EXPECT_EQ(text.find_first_not_of("0123456789abcdef"), std::string::npos);
}

}  // namespace
}  // namespace tycho
