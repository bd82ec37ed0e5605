// Choosing the next token from logits.
#include "trainer/eval/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "trainer/base/error.h"

namespace tycho {

int32_t sample_token(const std::vector<float>& logits, const SamplingConfig& config, double draw) {
  if (std::any_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); }))
    fail(ExitCode::kNumerics,
         "[generate] the model's logits are not numbers: its weights are damaged or training diverged");
  if (config.temperature == 0)
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());

  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
  });
  if (config.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(config.top_k)));

  std::vector<double> probabilities;
  const double top = logits[static_cast<size_t>(order.front())];
  for (const int32_t id : order)
    probabilities.push_back(std::exp((logits[static_cast<size_t>(id)] - top) / config.temperature));
  const double total = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  size_t kept = 0;
  double mass = 0;
  while (kept < probabilities.size() && (kept == 0 || mass < config.top_p * total))
    mass += probabilities[kept++];

  double rest = draw * mass;
  for (size_t i = 0; i < kept; ++i) {
    rest -= probabilities[i];
    if (rest < 0) return order[i];
  }
  return order[kept - 1];  // rounding left a crumb
}

}  // namespace tycho
