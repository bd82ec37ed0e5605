// Rounds in which ranks connect with one other at a time.
#include "trainer/comm/nccl/rank_pairs.h"

#include <gtest/gtest.h>

#include <set>

namespace tycho {
namespace {

TEST(RankPairs, ALineTakesTwoRoundsAndARingOfFiveThree) {
  EXPECT_EQ(rounds_of_pairs({{0, 1}, {1, 2}, {2, 3}}), (std::vector<RankPairs>{{{0, 1}, {2, 3}}, {{1, 2}}}));
  EXPECT_EQ(rounds_of_pairs({{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 0}}).size(), 3U);
  EXPECT_TRUE(rounds_of_pairs({}).empty());
}

TEST(RankPairs, TheOrderOfTheListDoesNotMatterAndPairsCountOnce) {
  EXPECT_EQ(rounds_of_pairs({{2, 1}, {1, 0}, {0, 1}, {1, 2}}), rounds_of_pairs({{0, 1}, {1, 2}}));
}

TEST(RankPairs, NoRankIsTwiceInARound) {
  RankPairs all;
  for (int a = 0; a < 7; ++a)
    for (int b = 0; b < a; ++b) all.emplace_back(a, b);
  size_t pairs = 0;
  for (const RankPairs& round : rounds_of_pairs(all)) {
    std::set<int> ranks;
    for (const auto& [a, b] : round) EXPECT_TRUE(ranks.insert(a).second && ranks.insert(b).second);
    pairs += round.size();
  }
  EXPECT_EQ(pairs, all.size());
}

}  // namespace
}  // namespace tycho
