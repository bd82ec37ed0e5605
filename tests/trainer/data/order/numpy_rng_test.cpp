// Draws against those of numpy.random.default_rng (tests/golden/make_order_goldens.py).
#include "trainer/data/order/numpy_rng.h"

#include <cstdlib>
#include <numeric>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

using testing::crc32_of;
using testing::golden;

Json numpy_goldens() { return parse_json(read_file(golden("order/numpy.json")), "numpy.json"); }

TEST(NumpyRngTest, DrawsWhatNumpyDraws) {
  // numpy.random.default_rng(seed).bit_generator.random_raw(2)
  NumpyRng zero(0), large(0xFEDCBA9876543210);
  EXPECT_EQ(zero.next64(), 11749869230777074271u);
  EXPECT_EQ(zero.next64(), 4976686463289251617u);
  EXPECT_EQ(large.next64(), 9844195068100054067u);
  EXPECT_EQ(large.next64(), 17238487345018659559u);
}

TEST(NumpyRngTest, IntegersOfAnyRange) {
  NumpyRng rng(17);
  for (const int64_t expected : {74, 84, 10, 16, 45}) EXPECT_EQ(rng.integers(0, 100), expected);
  for (const Json& one : numpy_goldens().at("integers")) {
    NumpyRng drawn(one[0].get<uint64_t>());
    for (const Json& expected : one[3])
      EXPECT_EQ(drawn.integers(one[1].get<int64_t>(), one[2].get<int64_t>()), expected.get<int64_t>()) << one;
  }
}

TEST(NumpyRngTest, UniformNumbers) {
  NumpyRng rng(7);
  for (const Json& expected : numpy_goldens().at("uniform"))
    EXPECT_EQ(-2.5 + 6.75 * rng.next_double(), std::strtod(expected.get<std::string>().c_str(), nullptr));
}

TEST(NumpyRngTest, ChoosesAndGoesOnAsNumpyDoes) {
  for (const Json& one : numpy_goldens().at("choice")) {
    NumpyRng rng(one[0].get<uint64_t>());
    const std::vector<int64_t> picked = rng.choice(one[1].get<int64_t>(), one[2].get<int64_t>());
    EXPECT_EQ(crc32_of({picked.begin(), picked.end()}), one[3].get<uint32_t>()) << one;
    EXPECT_EQ(rng.integers(0, int64_t{1} << 40), one[4].get<int64_t>()) << one;
  }
}

TEST(NumpyRngTest, SkippingLandsWhereDrawingDoes) {
  for (const uint64_t count : {0, 1, 2, 63, 1000}) {
    NumpyRng drawn(5), skipped(5);
    drawn.next32(), skipped.next32();  // half a word stays to be given out
    for (uint64_t i = 0; i < count; ++i) drawn.next64();
    skipped.skip64(count);
    EXPECT_EQ(drawn.next32(), skipped.next32());
    EXPECT_EQ(drawn.next64(), skipped.next64());
  }
  for (const size_t count : {0, 1, 2, 7, 64, 65, 5000}) {
    NumpyRng drawn(6), skipped(6);
    std::vector<uint32_t> items(count);
    std::iota(items.begin(), items.end(), 0u);
    drawn.shuffle(std::span(items));
    skipped.skip_shuffle(count);
    EXPECT_EQ(drawn.next32(), skipped.next32()) << count;
  }
}

TEST(NumpyRngTest, WordsAreCountedAndSkippedInOneStep) {
  for (const bool half : {false, true})
    for (const uint64_t count : {0, 1, 2, 3, 4, 5, 63, 64, 1000, 100001}) {
      NumpyRng drawn(7);
      if (half) drawn.next32();
      const NumpyRng before = drawn;
      NumpyRng skipped = before;
      for (uint64_t i = 0; i < count; ++i) drawn.next32();
      EXPECT_EQ(drawn.words_since(before), count);
      EXPECT_EQ(drawn == skipped, count == 0);
      skipped.skip32(count);
      EXPECT_EQ(drawn, skipped) << count;
      EXPECT_EQ(drawn.next32(), skipped.next32()) << count;
      EXPECT_EQ(drawn.next64(), skipped.next64()) << count;
    }
  NumpyRng far(7);
  far.skip32(uint64_t{1} << 40);
  EXPECT_EQ(far.words_since(NumpyRng(7)), uint64_t{1} << 40);
}

/// Generator.shuffle as NumPy writes it: a draw, then a swap.
std::vector<uint32_t> shuffled_one_by_one(NumpyRng& rng, size_t count) {
  std::vector<uint32_t> items(count);
  std::iota(items.begin(), items.end(), 0u);
  for (size_t i = count; i-- > 1;) std::swap(items[i], items[rng.interval(i)]);
  return items;
}

TEST(NumpyRngTest, ShufflesAsIfEachSwapWereDrawnAlone) {
  // Around the sizes at which masks, runs of draws and the way of drawing change.
  for (const size_t count :
       {1, 2, 16, 18, 64, 66, 81, 82, 97, 129, 257, 1024, 1026, 1200, 4097, 8180, 66000, 300000})
    for (const uint64_t seed : {1, 2, 3, 4, 5, 6, 7, 8})
      for (const bool half : {false, true}) {
        NumpyRng drawn(seed + count), shuffled(seed + count), skipped(seed + count);
        if (half)
          for (NumpyRng* rng : {&drawn, &shuffled, &skipped})
            rng->next32();  // half a word stays to be given out
        std::vector<uint32_t> items(count);
        std::iota(items.begin(), items.end(), 0u);
        shuffled.shuffle(std::span(items));
        skipped.skip_shuffle(count);
        ASSERT_EQ(items, shuffled_one_by_one(drawn, count)) << count << " seed " << seed;
        for (int i = 0; i < 3; ++i) {
          const uint32_t next = drawn.next32();
          ASSERT_EQ(shuffled.next32(), next) << count << " seed " << seed;
          ASSERT_EQ(skipped.next32(), next) << count << " seed " << seed;
        }
      }
}

TEST(NumpyRngTest, ManyUniformNumbersAreThoseDrawnAlone) {
  for (const size_t count : {0, 1, 127, 128, 129, 1000}) {
    NumpyRng alone(3), together(3);
    alone.next32(), together.next32();
    std::vector<double> numbers(count);
    together.next_doubles(numbers);
    for (const double number : numbers) ASSERT_EQ(number, alone.next_double());
    EXPECT_EQ(together.next32(), alone.next32());
    EXPECT_EQ(together.next64(), alone.next64());
  }
}

}  // namespace
}  // namespace tycho
