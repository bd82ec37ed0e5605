// Each pair is put into the first round that has neither of its ranks.
#include "trainer/comm/nccl/rank_pairs.h"

#include <algorithm>

namespace tycho {

std::vector<RankPairs> rounds_of_pairs(RankPairs pairs) {
  for (auto& [a, b] : pairs)
    if (a > b) std::swap(a, b);
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  std::vector<RankPairs> rounds;
  for (const auto& [a, b] : pairs) {
    const auto has_neither = [a = a, b = b](const RankPairs& round) {
      return std::none_of(round.begin(), round.end(), [&](const auto& other) {
        return other.first == a || other.second == a || other.first == b || other.second == b;
      });
    };
    const auto free = std::find_if(rounds.begin(), rounds.end(), has_neither);
    if (free == rounds.end())
      rounds.push_back({{a, b}});
    else
      free->emplace_back(a, b);
  }
  return rounds;
}

}  // namespace tycho
