// Orders of samples, against NumPy's.
#include "trainer/data/loader/sampler.h"

#include "tests/trainer/data/data_testing.h"
#include "trainer/data/loader/numpy_rng.h"

namespace tycho {
namespace {

uint32_t crc32(const std::vector<int64_t>& values) {
  uint32_t crc = UINT32_MAX;
  for (const int64_t value : values)
    for (int byte = 0; byte < 8; ++byte) {
      crc ^= static_cast<uint32_t>(value >> 8 * byte & 0xFF);
      for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    }
  return ~crc;
}

TEST(NumpyRngTest, DrawsWhatNumpyDraws) {
  // numpy.random.default_rng(17).integers(0, 100, 5): the high part of draw × 100.
  NumpyRng rng(17);
  for (const uint64_t expected : {74, 84, 10, 16, 45})
    EXPECT_EQ(rng.next32() * uint64_t{100} >> 32, expected);
  // numpy.random.default_rng(seed).bit_generator.random_raw(2)
  NumpyRng zero(0), large(0xFEDCBA9876543210);
  EXPECT_EQ(zero.next64(), 11749869230777074271u);
  EXPECT_EQ(zero.next64(), 4976686463289251617u);
  EXPECT_EQ(large.next64(), 9844195068100054067u);
  EXPECT_EQ(large.next64(), 17238487345018659559u);
}

TEST(EpochOrderTest, IsStreamingsNaiveShuffle) {
  const std::vector<uint32_t> expected = {13, 8,  20, 10, 2, 18, 21, 12, 7, 16, 5,
                                          15, 11, 0,  6,  4, 14, 1,  17, 9, 3,  19};
  EXPECT_EQ(epoch_order(22, true, 17, 1), expected);
  const auto large = epoch_order(100000, true, 9176, 3);
  EXPECT_EQ(crc32({large.begin(), large.end()}), 0x26ef0fcdu);
}

TEST(EpochOrderTest, IsAPermutationThatChangesWithSeedAndEpoch) {
  const auto order = epoch_order(1000, true, 1, 0);
  std::vector<bool> seen(1000);
  for (const uint32_t sample : order) seen[sample] = true;
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), 1000);
  EXPECT_EQ(order, epoch_order(1000, true, 1, 0));
  EXPECT_NE(order, epoch_order(1000, true, 1, 1));
  EXPECT_NE(order, epoch_order(1000, true, 2, 1));
}

TEST(EpochOrderTest, IsTheFileOrderWithoutShuffle) {
  EXPECT_EQ(epoch_order(4, false, 17, 3), (std::vector<uint32_t>{0, 1, 2, 3}));
  EXPECT_TRUE(epoch_order(0, true, 17, 3).empty());
}

}  // namespace
}  // namespace tycho
