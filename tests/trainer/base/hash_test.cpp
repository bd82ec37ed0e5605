// XXH3-128 against the values that xxHash's own self-test holds (cli/xsum_sanity_check.c, release 0.8).
#include "trainer/base/hash.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tycho {
namespace {

/// The bytes that the self-test hashes.
std::string self_test_bytes(size_t length) {
  std::string bytes;
  uint64_t generator = 2654435761U;
  for (size_t i = 0; i < length; ++i) {
    bytes += static_cast<char>(generator >> 56);
    generator *= 11400714785074694797ULL;
  }
  return bytes;
}

TEST(Hash, EqualsXxh128sum) {
  EXPECT_EQ(hash_hex(self_test_bytes(0)), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash_hex(self_test_bytes(1)), "a6cd5e9392000f6ac44bdff4074eecdb");
  EXPECT_EQ(hash_hex(self_test_bytes(6)), "082afe0b8162d12a3e7039bdda43cfc6");
  EXPECT_EQ(hash_hex(self_test_bytes(12)), "6e3efd8fc7802b18061a192713f69ad9");
  EXPECT_EQ(hash_hex(self_test_bytes(24)), "0ce966e4678d37611e7044d28b1b901d");
  EXPECT_EQ(hash_hex(self_test_bytes(48)), "a002ac4e5478227ef942219aed80f67b");
  EXPECT_EQ(hash_hex(self_test_bytes(222)), "337e09641b948717f1aebd597cec6b3a");
  EXPECT_EQ(hash_hex(self_test_bytes(403)), "1b6de21e332dd73dcdeb804d65c6dea4");
  // From here on whole blocks of 1,024 bytes, which are hashed with the widest vectors.
  EXPECT_EQ(hash_hex(self_test_bytes(2048)), "f736557fd47073a5dd59e2c3a5f038e0");
  EXPECT_EQ(hash_hex(self_test_bytes(2240)), "ccb134fbfa7ce49d6e73a90539cf2948");
  EXPECT_EQ(hash_hex(self_test_bytes(2367)), "e89c0f6ff369b427cb37aeb9e5d361ed");
}

TEST(Hash, OfPiecesIsThatOfTheWhole) {
  const std::string bytes = self_test_bytes(100000);
  for (size_t piece : {1, 7, 64, 1000, 65536, 100000}) {
    Hasher hasher;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      hasher.update(bytes.data() + at, std::min(piece, bytes.size() - at));
    }
    EXPECT_EQ(hasher.hex(), hash_hex(bytes)) << piece;
  }
}

TEST(Hash, CanBeReadBetweenPieces) {
  Hasher hasher;
  EXPECT_EQ(hasher.hex(), hash_hex(""));
  hasher.update("ty", 2);
  EXPECT_EQ(hasher.hex(), hash_hex("ty"));
  hasher.update("cho", 3);
  EXPECT_EQ(hasher.hex(), hash_hex("tycho"));
}

}  // namespace
}  // namespace tycho
