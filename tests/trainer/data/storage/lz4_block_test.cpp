// Blocks of LZ4, written by hand after its description.
#include "trainer/data/storage/lz4_block.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

std::string block(std::initializer_list<int> values, const std::string& end = "") {
  std::string bytes;
  for (const int value : values) bytes += static_cast<char>(value);
  return bytes + end;
}

/// "refused" for what is not a block of at most `most` bytes.
std::string decoded(const std::string& bytes, size_t most = 1000) {
  std::string out = "before ";
  if (!decode_lz4_block(bytes, most, out)) return "refused";
  EXPECT_EQ(out.substr(0, 7), "before ");
  return out.substr(7);
}

TEST(Lz4BlockTest, BytesAsTheyAreAndCopies) {
  EXPECT_EQ(decoded(block({0x00})), "");
  EXPECT_EQ(decoded(block({0x30}, "abc")), "abc");
  // Three bytes, then five of three back, which goes on into what it makes; then the last two.
  EXPECT_EQ(decoded(block({0x31}, "abc") + block({3, 0, 0x20}, "xy")), "abcabcabxy");
  // Lengths that go on: 15 + 255 + 4 bytes, and 4 + 15 + 6.
  const std::string long_text(274, 'q');
  EXPECT_EQ(decoded(block({0xFF, 255, 4}, long_text) + block({1, 0, 6, 0x10}, "z")),
            long_text + std::string(25, 'q') + "z");
}

TEST(Lz4BlockTest, RefusesWhatEndsEarlyReachesBackTooFarOrMakesTooMuch) {
  EXPECT_EQ(decoded(""), "refused");
  EXPECT_EQ(decoded(block({0x40}, "abc")), "refused");
  EXPECT_EQ(decoded(block({0xF0})), "refused");
  EXPECT_EQ(decoded(block({0xF0, 255})), "refused");
  EXPECT_EQ(decoded(block({0x31}, "abc") + block({3})), "refused");
  EXPECT_EQ(decoded(block({0x31}, "abc") + block({3, 0})), "refused");             // ends with a copy
  EXPECT_EQ(decoded(block({0x31}, "abc") + block({4, 0, 0x10}, "x")), "refused");  // into "before "
  EXPECT_EQ(decoded(block({0x31}, "abc") + block({0, 0, 0x10}, "x")), "refused");
  const std::string ten = block({0x32}, "abc") + block({3, 0, 0x10}, "x");
  EXPECT_EQ(decoded(ten, 10), "abcabcabcx");
  EXPECT_EQ(decoded(ten, 9), "refused");
  EXPECT_EQ(decoded(ten, 8), "refused");
}

}  // namespace
}  // namespace tycho
