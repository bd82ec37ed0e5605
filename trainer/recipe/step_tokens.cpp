// Sums, searched for where a number of tokens is reached.
#include "trainer/recipe/step_tokens.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/error.h"

namespace tycho {

StepTokens::StepTokens(const std::vector<int64_t>& of_steps) : sums_({0}) {
  TYCHO_CHECK(!of_steps.empty(), "[data] expected tokens of one step or more, got none");
  for (const int64_t tokens : of_steps) sums_.push_back(sums_.back() + tokens);
  mean_ = static_cast<double>(sums_.back()) / static_cast<double>(of_steps.size());
}

double StepTokens::tokens(double steps) const {
  const auto known = static_cast<double>(sums_.size() - 1);
  if (steps >= known) return static_cast<double>(sums_.back()) + mean_ * (steps - known);
  const double whole = std::floor(std::max(0.0, steps));
  const auto k = static_cast<size_t>(whole);
  return static_cast<double>(sums_[k]) +
         (std::max(0.0, steps) - whole) * static_cast<double>(sums_[k + 1] - sums_[k]);
}

double StepTokens::steps(double tokens) const {
  const auto known = static_cast<double>(sums_.size() - 1), sum = static_cast<double>(sums_.back());
  if (tokens > sum) return known + (tokens - sum) / mean_;
  const auto reached = std::lower_bound(
      sums_.begin() + 1, sums_.end(), tokens,
      [](int64_t of_steps, double wanted) { return static_cast<double>(of_steps) < wanted; });
  const auto before = static_cast<double>(*(reached - 1)), after = static_cast<double>(*reached);
  return static_cast<double>(reached - sums_.begin() - 1) + (tokens - before) / (after - before);
}

}  // namespace tycho
