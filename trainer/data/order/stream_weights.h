// How many samples of an epoch come from each stream.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tycho {

/// What a recipe says of a stream; at most one of them.
struct StreamWeight {
  std::optional<double> proportion;  // of the epoch, as a share of the sum over all streams
  std::optional<double> repeat;      // times all of its samples
  std::optional<int64_t> choose;     // samples
};

struct StreamShare {
  double proportion = 0;  // of the epoch
  int64_t samples = 0;
};

/// mosaicml-streaming's Stream.apply_weights: with proportions, or with an epoch_size and no weights, the
/// epoch is divided in proportion, and samples that rounding leaves over go to streams that `seed` chooses;
/// else each stream has its own number. Either all streams have a proportion or none has; without, an
/// epoch_size needs streams without weights.
std::vector<StreamShare> stream_shares(std::span<const StreamWeight> weights,
                                       std::span<const int64_t> samples_per_stream,
                                       std::optional<int64_t> epoch_size, uint64_t seed);

}  // namespace tycho
