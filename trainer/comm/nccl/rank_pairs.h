// Pairs of ranks in rounds, so that every rank can connect with one other at a time. Torch-free.
#pragma once
#include <utility>
#include <vector>

namespace tycho {

using RankPairs = std::vector<std::pair<int, int>>;

/// Returns all pairs, each once and with its lower rank first, in rounds in which no rank is in two pairs.
/// The result is equal on all ranks, whichever order they list the pairs in.
std::vector<RankPairs> rounds_of_pairs(RankPairs pairs);

}  // namespace tycho
