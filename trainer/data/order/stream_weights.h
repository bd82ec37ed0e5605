// Number of samples of an epoch from each stream.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tycho {

/// Weight that a recipe gives a stream; at most one member is set.
struct StreamWeight {
  std::optional<double> proportion;  // share of the sum of proportions of all streams
  std::optional<double> repeat;      // passes over all samples of the stream
  std::optional<int64_t> choose;     // number of samples
};

struct StreamShare {
  double proportion = 0;  // share of the epoch
  int64_t samples = 0;
};

/// Implements mosaicml-streaming's Stream.apply_weights. With proportions, or with an epoch_size and no
/// weights, the epoch is divided in proportion, and samples left over by rounding go to streams that `seed`
/// chooses; else each stream has its own number. Either all streams have a proportion or none has; without
/// proportions, an epoch_size requires streams without weights.
std::vector<StreamShare> stream_shares(std::span<const StreamWeight> weights,
                                       std::span<const int64_t> samples_per_stream,
                                       std::optional<int64_t> epoch_size, uint64_t seed);

}  // namespace tycho
