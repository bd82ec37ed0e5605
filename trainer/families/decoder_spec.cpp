// Every family as a decoder spec, and what their specs share.
#include "trainer/families/decoder_spec.h"

#include <cmath>

namespace tycho {

Init normal(double std) { return {Init::Kind::kNormal, std}; }

double residual_divisor(int64_t layers) { return std::sqrt(2.0 * static_cast<double>(layers)); }

DecoderInit normal_init(double std, int64_t layers) {
  const Init matrix = normal(std), residual = normal(std / residual_divisor(layers));
  return {matrix, matrix, matrix, matrix, residual, matrix, matrix, residual};
}

int64_t DecoderSpec::last_user_of_kv(int64_t i) const {
  int64_t last = layers - 1;
  while (block(last).kv_block != i) --last;
  return last;
}

int64_t DecoderSpec::last_user_of_x(int64_t i) const {
  int64_t last = layers - 1;
  while (block(last).x_block != i) --last;
  return last;
}

bool DecoderSpec::shares_kv() const {
  for (int64_t i = 0; i < layers; ++i)
    if (reuses_kv(i)) return true;
  return false;
}

bool DecoderSpec::shares_x() const {
  for (int64_t i = 0; i < layers; ++i)
    if (reuses_x(i)) return true;
  return false;
}

std::vector<float> alibi_slopes(int64_t heads, double bias_max) {
  int64_t power = 1;
  while (power < heads) power *= 2;
  const auto slope = [&](int64_t i) {
    return static_cast<float>(std::exp2(-static_cast<double>(i) * bias_max / static_cast<double>(power)));
  };
  std::vector<float> slopes;
  if (power == heads) {
    for (int64_t i = 1; i <= heads; ++i) slopes.push_back(slope(i));
    return slopes;
  }
  for (int64_t i = 2; i <= power; i += 2) slopes.push_back(slope(i));
  for (int64_t i = 1; i <= power; i += 2) slopes.push_back(slope(i));
  slopes.resize(static_cast<size_t>(heads));
  return slopes;
}

}  // namespace tycho
