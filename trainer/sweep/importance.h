// How much each key of a sweep decides about its metric. Torch-free.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "trainer/sweep/board.h"

namespace tycho {

struct KeyImportance {
  std::string key;
  double share = 0;                   // of the importance of all keys together
  std::optional<double> correlation;  // Spearman's, of a key whose values are numbers, with the metric
};

struct SweepImportance {
  std::vector<KeyImportance> keys;  // the most important first; empty for fewer than kFewestTrials trials
  double explained = 0;  // share of the variance of ranks that the keys explain for trials left out
};

inline constexpr int64_t kFewestTrials = 10;

/// Computes how much worse a random forest predicts the rank of trials that it was not grown from when a
/// key's values are exchanged among them. Compares ranks, so that a trial that diverged counts as last and no
/// more. Gives the same result each time.
SweepImportance importance_of(const Board& board);

}  // namespace tycho
