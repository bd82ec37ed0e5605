// Tokens of each step where rows have padding that does not count.
#pragma once
#include <cstdint>
#include <vector>

namespace tycho {

/// Tokens without padding of a run's first steps, in order. Not empty. Steps after the last one count the
/// mean of all.
class StepTokens {
 public:
  explicit StepTokens(const std::vector<int64_t>& of_steps);

  /// Returns the tokens of the first `steps` steps, real-valued: a part of a step has that part of its
  /// tokens.
  double tokens(double steps) const;
  /// Returns how many steps from the start of the run have `tokens` tokens, real-valued.
  double steps(double tokens) const;
  double mean() const { return mean_; }

 private:
  std::vector<int64_t> sums_;  // [k]: tokens of the first k steps
  double mean_;
};

}  // namespace tycho
