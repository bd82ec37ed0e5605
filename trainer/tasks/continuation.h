// Texts about whose ends a model is asked, and what it says of them. Torch-free.
#pragma once
#include <cstdint>
#include <vector>

namespace tycho {

/// A text and its continuation as tokens, and how many tokens at the end are the continuation: at least one,
/// and not all of them.
struct Continuation {
  std::vector<int32_t> tokens;
  int64_t num_asked = 0;
};

struct ContinuationScore {
  double logprob = 0;                // natural logarithm of the probability of the whole continuation
  bool is_greedy = false;            // each of its tokens is the likeliest one
  double mean_probability = 0;       // over its tokens
  double least_top_probability = 0;  // the lowest probability of the likeliest token, over the positions
};

}  // namespace tycho
