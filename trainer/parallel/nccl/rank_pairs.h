// Pairs of ranks in rounds, so that every rank can connect with one other at a time. Torch-free.
#pragma once
#include <utility>
#include <vector>

namespace tycho {

using RankPairs = std::vector<std::pair<int, int>>;

/// All pairs, each once and with its lower rank first, in rounds in which no rank is in two of them. The same
/// on all ranks, whichever order they list the pairs in.
std::vector<RankPairs> rounds_of_pairs(RankPairs pairs);

}  // namespace tycho
