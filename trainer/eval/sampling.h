// Choosing the next token from logits.
#pragma once
#include <cstdint>
#include <vector>

namespace tycho {

struct SamplingConfig {
  double temperature = 1.0;  // 0: greedy
  int64_t top_k = 0;         // keep the k likeliest; 0 keeps all
  double top_p = 1.0;        // then the likeliest whose probabilities sum to at least this
};

/// Index of the token. `draw` is uniform in [0, 1): the same logits and draw give the same token. Ties go to
/// the lower index. Throws Error (kNumerics) when a logit is NaN.
int32_t sample_token(const std::vector<float>& logits, const SamplingConfig& config, double draw);

}  // namespace tycho
