// Philox against the known answers of Random123 (kat_vectors, philox4x32 10), and the keys of streams.
#include "trainer/base/random/philox.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tycho {
namespace {

using Words = std::array<uint32_t, 4>;

TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox(~0ull, ~0ull, ~0ull), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, StreamKeysDifferBySeedAndName) {
  std::set<uint64_t> keys;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (const char* name : {"", "a", "model.norm.weight", "model.layers.1.mlp.down_proj.weight"}) {
      keys.insert(stream_key(seed, name));
    }
  }
  EXPECT_EQ(keys.size(), 400u);
}

TEST(Philox, StreamKeysNeverChange) {
  // Another value here means that no old run can be repeated.
  EXPECT_EQ(stream_key(0, ""), 0x2d06800538d394c2u);  // XXH3-64 of nothing, as published
  EXPECT_EQ(stream_key(17, "model.norm.weight"), stream_key(17, std::string("model.norm.weight")));
}

TEST(Philox, UniformsAreInRangeAndEven) {
  EXPECT_EQ(uniform_float(0), 0.0f);
  EXPECT_LT(uniform_float(~0u), 1.0f);
  const int n = 40000;
  double sum = 0, squares = 0;
  for (uint64_t i = 0; i < n / 4; ++i) {
    for (uint32_t word : philox(stream_key(1, "test"), i)) {
      const double x = uniform_float(word);
      sum += x, squares += x * x;
    }
  }
  // Four standard errors of the mean and of the mean square.
  EXPECT_NEAR(sum / n, 0.5, 4 * 0.2887 / 200);
  EXPECT_NEAR(squares / n, 1.0 / 3, 4 * 0.2981 / 200);
}

}  // namespace
}  // namespace tycho
