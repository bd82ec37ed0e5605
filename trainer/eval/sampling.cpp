// Takes tokens in order of probability only as far as a draw needs.
#include "trainer/eval/sampling.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/base/error.h"

namespace tycho {
namespace {

/// Yields tokens from the most likely down, and their probabilities up to a common factor. A draw needs only
/// a few, so they are never all sorted.
class Ranking {
 public:
  Ranking(const std::vector<float>& logits, double temperature) : temperature_(temperature) {
    heap_.reserve(logits.size());
    for (size_t id = 0; id < logits.size(); ++id) heap_.push_back({logits[id], static_cast<int32_t>(id)});
    std::make_heap(heap_.begin(), heap_.end());
    top_ = heap_.front().logit;
  }
  int32_t id(size_t rank) { return at(rank).id; }
  double mass(size_t rank) { return mass_of(at(rank).logit); }
  double mass_of(float logit) const { return std::exp((double{logit} - top_) / temperature_); }

 private:
  struct Candidate {
    float logit;
    int32_t id;
    bool operator<(const Candidate& other) const {
      return logit != other.logit ? logit < other.logit : id > other.id;
    }
  };
  const Candidate& at(size_t rank) {
    for (; sorted_.size() <= rank; heap_.pop_back()) {
      std::pop_heap(heap_.begin(), heap_.end());
      sorted_.push_back(heap_.back());
    }
    return sorted_[rank];
  }

  double temperature_, top_;
  std::vector<Candidate> heap_, sorted_;
};

}  // namespace

void penalise_repetition(std::vector<float>& logits, const std::vector<bool>& seen, double penalty) {
  const auto factor = static_cast<float>(penalty);
  for (size_t id = 0; id < logits.size(); ++id)
    if (seen[id]) logits[id] = logits[id] < 0 ? logits[id] * factor : logits[id] / factor;
}

double log_probability(const std::vector<float>& logits, int32_t token) {
  const double top = *std::max_element(logits.begin(), logits.end());
  double mass = 0;
  for (const float logit : logits) mass += std::exp(double{logit} - top);
  return double{logits[static_cast<size_t>(token)]} - top - std::log(mass);
}

int32_t sample_token(const std::vector<float>& logits, const SamplingConfig& config, double draw) {
  if (std::any_of(logits.begin(), logits.end(), [](float x) { return std::isnan(x); }))
    fail(ExitCode::kNumerics,
         "[generate] the model's logits are not numbers: its weights are damaged or training diverged");
  if (config.temperature == 0)
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());

  Ranking ranking(logits, config.temperature);
  size_t kept = logits.size();
  double mass = 0;
  if (config.top_k > 0 && std::cmp_less(config.top_k, kept)) {
    kept = static_cast<size_t>(config.top_k);
    for (size_t rank = 0; rank < kept; ++rank) mass += ranking.mass(rank);
  } else {
    for (const float logit : logits) mass += ranking.mass_of(logit);
  }
  if (config.top_p < 1) {
    const double wanted = config.top_p * mass;
    const size_t candidates = kept;
    for (kept = 0, mass = 0; kept < candidates && (kept == 0 || mass < wanted); ++kept)
      mass += ranking.mass(kept);
  }

  double rest = draw * mass;
  for (size_t rank = 0; rank < kept; ++rank) {
    rest -= ranking.mass(rank);
    if (rest < 0) return ranking.id(rank);
  }
  return ranking.id(kept - 1);  // rounding left a remainder
}

}  // namespace tycho
