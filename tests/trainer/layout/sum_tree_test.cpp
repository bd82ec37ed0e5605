// Sums as texts: the same text is the same order of additions.
#include "trainer/layout/sum_tree.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tycho {
namespace {

struct Walk {
  std::string sum;
  int64_t most_held = 0;
};

/// What a rank with the leaves from `first` on adds up.
Walk walk(int64_t first, int64_t leaves) {
  const SumTree tree = {leaves};
  std::vector<std::string> held;
  Walk result;
  for (int64_t i = 0; i < leaves; ++i) {
    std::string one = std::to_string(first + i);
    for (int64_t joins = tree.num_joins(i); joins > 0; --joins) {
      one = fmt::format("({}+{})", held.back(), one);
      held.pop_back();
    }
    held.push_back(one);
    if (i + 1 < leaves) result.most_held = std::max(result.most_held, static_cast<int64_t>(held.size()));
  }
  EXPECT_EQ(held.size(), 1U) << leaves;
  result.sum = held.back();
  return result;
}

/// The complete tree over what ranks have.
std::string together(const std::vector<std::string>& sums, size_t begin, size_t count) {
  if (count == 1) return sums[begin];
  return fmt::format("({}+{})", together(sums, begin, count / 2),
                     together(sums, begin + count / 2, count / 2));
}

TEST(SumTree, AddsHalvesAndRunsOfAnOddLength) {
  EXPECT_EQ(walk(0, 1).sum, "0");
  EXPECT_EQ(walk(0, 3).sum, "((0+1)+2)");
  EXPECT_EQ(walk(0, 4).sum, "((0+1)+(2+3))");
  EXPECT_EQ(walk(0, 6).sum, "(((0+1)+2)+((3+4)+5))");
}

TEST(SumTree, IsTheSameForAnyNumberOfRanks) {
  for (const int64_t leaves : {1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 56, 64})
    for (int64_t ranks = 1; leaves % ranks == 0; ranks *= 2) {
      std::vector<std::string> sums;
      for (int64_t r = 0; r < ranks; ++r) sums.push_back(walk(r * (leaves / ranks), leaves / ranks).sum);
      EXPECT_EQ(together(sums, 0, sums.size()), walk(0, leaves).sum) << leaves << " on " << ranks;
    }
}

TEST(SumTree, KnowsHowManySumsAreHeld) {
  for (int64_t leaves = 1; leaves <= 100; ++leaves)
    EXPECT_EQ(SumTree{leaves}.most_held(), walk(0, leaves).most_held) << leaves;
  EXPECT_EQ(SumTree{1}.most_held(), 0);
  EXPECT_EQ(SumTree{8}.most_held(), 3);
}

}  // namespace
}  // namespace tycho
