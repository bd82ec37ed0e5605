// The frequencies of rotary positions, plain and stretched over longer contexts.
#include "trainer/kernels/attention/rope_frequencies.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <utility>

#include "trainer/base/error.h"

namespace tycho {
namespace {

void check(int64_t rotary_dim, double theta, const RopeScalingConfig& scaling) {
  TYCHO_CHECK(rotary_dim > 0 && rotary_dim % 2 == 0 && theta > 0,
              "[rope] expected an even head dim > 0 and theta > 0, got {} and {}", rotary_dim, theta);
  if (scaling.type == RopeScaling::kLongrope)
    for (const std::vector<double>* divisors : {&scaling.short_factor, &scaling.long_factor})
      TYCHO_CHECK(std::ssize(*divisors) == rotary_dim / 2, "[rope] expected longrope with {} factors, got {}",
                  rotary_dim / 2, divisors->size());
  // The rules of the config (families/check.cpp) allow no other scaling.
  assert(scaling.type != RopeScaling::kDynamic || rotary_dim > 2);
  assert(scaling.type != RopeScaling::kLlama3 || scaling.high_freq_factor > scaling.low_freq_factor);
  assert(scaling.type != RopeScaling::kYarn || theta > 1);
}

double dynamic_theta(int64_t rotary_dim, double theta, const RopeScalingConfig& scaling, int64_t seq) {
  const double stretch = static_cast<double>(std::max(seq, scaling.original_max_seq_len)) /
                         static_cast<double>(scaling.original_max_seq_len);
  const double dim = static_cast<double>(rotary_dim);
  return theta * std::pow(scaling.factor * stretch - (scaling.factor - 1), dim / (dim - 2));
}

double llama3_frequency(double frequency, const RopeScalingConfig& scaling) {
  const double turns = static_cast<double>(scaling.original_max_seq_len) * frequency / (2 * std::numbers::pi);
  const double kept = std::clamp(
      (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor), 0.0, 1.0);
  return frequency * (kept + (1 - kept) / scaling.factor);
}

/// Pairs up to `first` are kept, pairs from `last` on are divided by factor.
struct YarnRamp {
  double first = 0, last = 0;
};

YarnRamp yarn_ramp(int64_t rotary_dim, double theta, const RopeScalingConfig& scaling) {
  const auto dim = static_cast<double>(rotary_dim);
  const auto pair_with = [&](double turns) {
    const double wavelength = static_cast<double>(scaling.original_max_seq_len) / turns;
    return dim * std::log(wavelength / (2 * std::numbers::pi)) / (2 * std::log(theta));
  };
  double first = pair_with(scaling.beta_fast), last = pair_with(scaling.beta_slow);
  if (scaling.truncate) first = std::floor(first), last = std::ceil(last);
  first = std::max(first, 0.0), last = std::min(last, dim - 1);
  return {first, first == last ? last + 0.001 : last};
}

double yarn_frequency(double frequency, double pair, const YarnRamp& ramp, double factor) {
  const double divided = std::clamp((pair - ramp.first) / (ramp.last - ramp.first), 0.0, 1.0);
  return frequency * (1 - divided + divided / factor);
}

double attention_factor(const RopeScalingConfig& scaling) {
  const double stretch = std::log(scaling.factor);
  const auto grown = [&](double mscale) { return 0.1 * mscale * stretch + 1; };
  if (scaling.type == RopeScaling::kYarn) {
    if (scaling.attention_factor) return *scaling.attention_factor;
    if (!scaling.mscale || !scaling.mscale_all_dim) return grown(1);
    return grown(*scaling.mscale) / grown(*scaling.mscale_all_dim);
  }
  if (scaling.type != RopeScaling::kLongrope) return 1;
  if (scaling.attention_factor || stretch == 0) return scaling.attention_factor.value_or(1);
  return std::sqrt(1 + stretch / std::log(static_cast<double>(scaling.original_max_seq_len)));
}

}  // namespace

RopeFrequencies rope_frequencies(int64_t rotary_dim, double theta, const RopeScalingConfig& scaling,
                                 int64_t seq) {
  check(rotary_dim, theta, scaling);
  if (scaling.type == RopeScaling::kDynamic) theta = dynamic_theta(rotary_dim, theta, scaling, seq);
  const YarnRamp ramp =
      scaling.type == RopeScaling::kYarn ? yarn_ramp(rotary_dim, theta, scaling) : YarnRamp();
  const auto& divisors = seq > scaling.original_max_seq_len ? scaling.long_factor : scaling.short_factor;
  std::vector<double> radians(static_cast<size_t>(rotary_dim / 2));
  for (size_t j = 0; j < radians.size(); ++j) {
    const double pair = static_cast<double>(j);
    double& frequency = radians[j];
    frequency = std::pow(theta, -2.0 * pair / static_cast<double>(rotary_dim));
    if (scaling.type == RopeScaling::kLinear) frequency /= scaling.factor;
    if (scaling.type == RopeScaling::kLlama3) frequency = llama3_frequency(frequency, scaling);
    if (scaling.type == RopeScaling::kYarn) frequency = yarn_frequency(frequency, pair, ramp, scaling.factor);
    if (scaling.type == RopeScaling::kLongrope) frequency /= divisors[j];
  }
  return {std::move(radians), attention_factor(scaling)};
}

}  // namespace tycho
