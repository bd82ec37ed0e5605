// Tokens of each step where rows have padding that does not count.
#pragma once
#include <cstdint>
#include <vector>

namespace tycho {

/// Tokens without padding of the first steps of a run, one after the other. Not empty; behind the last one
/// steps have the mean of all.
class StepTokens {
 public:
  explicit StepTokens(const std::vector<int64_t>& of_steps);

  /// Tokens of the first so many steps, real-valued: a part of a step has that part of its tokens.
  double tokens(double steps) const;
  /// Steps that so many tokens take, from the start of the run (real-valued).
  double steps(double tokens) const;
  double mean() const { return mean_; }

 private:
  std::vector<int64_t> sums_;  // [k]: of k steps
  double mean_;
};

}  // namespace tycho
