// Widths of batches by hand.
#include "trainer/recipe/batch_width.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace tycho {
namespace {

TEST(BatchWidth, HoldsTheLongestRowInWholeSteps) {
  const std::vector<int32_t> lengths = {3, 64, 65, 128, 200, 1};
  const auto width = [&](std::vector<uint32_t> rows, int64_t seq_len) {
    return batch_width(lengths, rows, seq_len);
  };
  EXPECT_EQ(width({0, 5}, 256), 64);
  EXPECT_EQ(width({0, 1}, 256), 64);
  EXPECT_EQ(width({2}, 256), 128);
  EXPECT_EQ(width({3, 0}, 256), 128);
  EXPECT_EQ(width({0, 4, 1}, 256), 256);
  EXPECT_EQ(width({4}, 200), 200);  // seq_len is no multiple of the step
  EXPECT_EQ(width({5}, 3), 3);
  EXPECT_EQ(width({}, 256), 64);
}

TEST(BatchWidth, ThereAreAtMost64) {
  for (const int64_t seq_len : {1, 63, 64, 100, 2048, 4096, 4097, 8192, 100'000, 1 << 24}) {
    const int64_t step = width_step(seq_len);
    EXPECT_EQ(step % 64, 0);
    EXPECT_LE((seq_len + step - 1) / step, 64) << seq_len;
    EXPECT_EQ(step == 64, seq_len <= 4096);
  }
  EXPECT_EQ(width_step(8192), 128);
}

}  // namespace
}  // namespace tycho
