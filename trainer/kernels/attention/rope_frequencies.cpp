// The frequencies of rotary positions, plain and stretched over longer contexts.
#include "trainer/kernels/attention/rope_frequencies.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>

#include "trainer/base/error.h"

namespace tycho {
namespace {

void check(int64_t head_dim, double theta, [[maybe_unused]] const RopeScalingConfig& scaling) {
  TYCHO_CHECK(head_dim > 0 && head_dim % 2 == 0 && theta > 0,
              "[rope] expected an even head dim > 0 and theta > 0, got {} and {}", head_dim, theta);
  // The rules of the config (families/rules.cpp) allow no other scaling.
  assert(scaling.type != RopeScaling::kDynamic || head_dim > 2);
  assert(scaling.type != RopeScaling::kLlama3 || scaling.high_freq_factor > scaling.low_freq_factor);
}

double dynamic_theta(int64_t head_dim, double theta, const RopeScalingConfig& scaling, int64_t seq) {
  const double stretch = static_cast<double>(std::max(seq, scaling.original_max_seq_len)) /
                         static_cast<double>(scaling.original_max_seq_len);
  const double dim = static_cast<double>(head_dim);
  return theta * std::pow(scaling.factor * stretch - (scaling.factor - 1), dim / (dim - 2));
}

double llama3_frequency(double frequency, const RopeScalingConfig& scaling) {
  const double turns = static_cast<double>(scaling.original_max_seq_len) * frequency / (2 * std::numbers::pi);
  const double kept = std::clamp(
      (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor), 0.0, 1.0);
  return frequency * (kept + (1 - kept) / scaling.factor);
}

}  // namespace

std::vector<double> rope_frequencies(int64_t head_dim, double theta, const RopeScalingConfig& scaling,
                                     int64_t seq) {
  check(head_dim, theta, scaling);
  if (scaling.type == RopeScaling::kDynamic) theta = dynamic_theta(head_dim, theta, scaling, seq);
  std::vector<double> frequencies(static_cast<size_t>(head_dim / 2));
  for (size_t j = 0; j < frequencies.size(); ++j) {
    double& frequency = frequencies[j];
    frequency = std::pow(theta, -2.0 * static_cast<double>(j) / static_cast<double>(head_dim));
    if (scaling.type == RopeScaling::kLinear) frequency /= scaling.factor;
    if (scaling.type == RopeScaling::kLlama3) frequency = llama3_frequency(frequency, scaling);
  }
  return frequencies;
}

}  // namespace tycho
