// Which examples share a row.
#include "trainer/data/chat/example_packer.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/trainer/data/data_testing.h"

namespace tycho {
namespace {

using Rows = std::vector<std::vector<uint32_t>>;

TEST(ExamplePacker, FillsTheRowWithTheLeastSpaceLeft) {
  // 7 and 6 open rows; 3 fits both and fills the first, 4 the second; 2 opens a third.
  EXPECT_EQ(pack_examples(std::vector<int32_t>{2, 7, 3, 6, 4}, 10), (Rows{{0}, {1, 2}, {3, 4}}));
  EXPECT_EQ(pack_examples(std::vector<int32_t>{5, 5, 5}, 5), (Rows{{0}, {1}, {2}}));
  EXPECT_EQ(pack_examples(std::vector<int32_t>{1, 1, 1, 1}, 3), (Rows{{0, 1, 2}, {3}}));
  EXPECT_TRUE(pack_examples({}, 8).empty());
}

TEST(ExamplePacker, KeepsEveryExampleOnceAndWholeInFewRows) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    std::vector<int32_t> lengths(500);
    for (int32_t& length : lengths) length = static_cast<int32_t>(1 + random() % (round < 10 ? 128 : 40));
    const Rows rows = pack_examples(lengths, 128);
    std::vector<uint32_t> all;
    for (const auto& row : rows) {
      int64_t tokens = 0;
      for (const uint32_t example : row) tokens += lengths[example];
      EXPECT_LE(tokens, 128);
      EXPECT_TRUE(std::is_sorted(row.begin(), row.end()));
      all.insert(all.end(), row.begin(), row.end());
    }
    std::sort(all.begin(), all.end());
    std::vector<uint32_t> expected(lengths.size());
    std::iota(expected.begin(), expected.end(), 0u);
    EXPECT_EQ(all, expected);
    EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
    // Best fit decreasing needs at most 11/9 of the best possible number of rows, and one more.
    const int64_t total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    if (round >= 10) {
      EXPECT_LE(static_cast<int64_t>(rows.size()), (total + 127) / 128 * 11 / 9 + 1);
    }
    EXPECT_EQ(pack_examples(lengths, 128), rows);
  }
}

TEST(ExamplePacker, RefusesWhatFitsNoRow) {
  testing::expect_error(ExitCode::kFailure, {"[packing] expected examples of 1 to 8 tokens, got one of 9"},
                        [] {
                          pack_examples(std::vector<int32_t>{3, 9}, 8);
                        });
  testing::expect_error(ExitCode::kFailure, {"got one of 0"},
                        [] { pack_examples(std::vector<int32_t>{0}, 8); });
}

}  // namespace
}  // namespace tycho
