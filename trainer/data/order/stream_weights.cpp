// Uses NumPy's arithmetic, so that shares are rounded as in mosaicml-streaming.
#include "trainer/data/order/stream_weights.h"

#include <algorithm>
#include <numeric>

#include "trainer/data/order/numpy_rng.h"

namespace tycho {
namespace {

/// Computes numpy.sum of doubles: eight partial sums, and halves of more than 128 numbers separately.
double numpy_sum(std::span<const double> x) {
  if (x.size() < 8) return std::accumulate(x.begin(), x.end(), 0.0);
  if (x.size() > 128) {
    const size_t half = x.size() / 2 - x.size() / 2 % 8;
    return numpy_sum(x.first(half)) + numpy_sum(x.subspan(half));
  }
  double part[8];
  std::copy_n(x.begin(), 8, part);
  size_t i = 8;
  for (; i + 8 <= x.size(); i += 8)
    for (size_t j = 0; j < 8; ++j) part[j] += x[i + j];
  double sum = ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
  for (; i < x.size(); ++i) sum += x[i];
  return sum;
}

std::vector<StreamShare> divide(std::vector<double> parts, int64_t epoch_size, uint64_t seed) {
  const double sum = numpy_sum(parts);
  std::vector<StreamShare> shares;
  int64_t left = epoch_size;
  for (const double part : parts) {
    const double proportion = part / sum;
    shares.push_back({proportion, static_cast<int64_t>(static_cast<double>(epoch_size) * proportion)});
    left -= shares.back().samples;
  }
  for (const int64_t stream :
       NumpyRng(seed).choice(static_cast<int64_t>(parts.size()), std::max<int64_t>(left, 0)))
    ++shares[static_cast<size_t>(stream)].samples;
  return shares;
}

}  // namespace

std::vector<StreamShare> stream_shares(std::span<const StreamWeight> weights,
                                       std::span<const int64_t> samples_per_stream,
                                       std::optional<int64_t> epoch_size, uint64_t seed) {
  const int64_t all = std::accumulate(samples_per_stream.begin(), samples_per_stream.end(), int64_t{0});
  if (weights[0].proportion) {
    std::vector<double> parts;
    for (const StreamWeight& weight : weights) parts.push_back(weight.proportion.value_or(0));
    return divide(std::move(parts), epoch_size.value_or(all), seed);
  }
  if (epoch_size) return divide({samples_per_stream.begin(), samples_per_stream.end()}, *epoch_size, seed);
  std::vector<StreamShare> shares;
  int64_t chosen = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const int64_t stored = samples_per_stream[i];
    const double repeat = weights[i].repeat.value_or(1);
    shares.push_back(
        {0, weights[i].choose.value_or(static_cast<int64_t>(repeat * static_cast<double>(stored)))});
    chosen += shares.back().samples;
  }
  for (StreamShare& share : shares)
    share.proportion = static_cast<double>(share.samples) / static_cast<double>(chosen);
  return shares;
}

}  // namespace tycho
