// Choosing the next token from logits. Torch-free.
#pragma once
#include <cstdint>
#include <vector>

namespace tycho {

struct SamplingConfig {
  double temperature = 1.0;  // 0: greedy
  int64_t top_k = 0;         // keep the k most likely; 0 keeps all
  double top_p = 1.0;        // then keep the most likely whose probabilities sum to at least this
  double repetition_penalty = 1.0;
};

/// Makes tokens already seen less likely: their logits are divided by `penalty` where positive and
/// multiplied where negative, each once.               (Keskar et al. 2019, arXiv:1909.05858; transformers)
void penalise_repetition(std::vector<float>& logits, const std::vector<bool>& seen, double penalty);

/// Returns the natural logarithm of a token's probability.
double log_probability(const std::vector<float>& logits, int32_t token);

/// Returns the index of a token. `draw` is uniform in [0, 1): the same logits and draw give the same token.
/// Ties go to the lower index. Throws Error (kNumerics) when a logit is NaN.
int32_t sample_token(const std::vector<float>& logits, const SamplingConfig& config, double draw);

}  // namespace tycho
