// The stored samples of an epoch, each once or more: streams drawn to their share.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "trainer/data/order/numpy_rng.h"
#include "trainer/data/order/range_index.h"

namespace tycho {

/// Number of samples of each shard of a stream.
using ShardSizes = std::vector<uint32_t>;

/// Parameters with which a stream is drawn: mosaicml-streaming's sampling.
struct Sampling {
  int64_t granularity = 1;    // samples drawn from a shard at a time
  uint64_t seed = 0;          // chooses the shards that give more
  uint64_t samples_seed = 0;  // chooses the samples of a shard
};

/// Returns the number of samples that each shard gives, `wanted` in all: whole passes over all shards, and
/// for the rest shards drawn at random.
std::vector<int64_t> draw_from_shards(std::span<const uint32_t> shard_sizes, int64_t wanted,
                                      const Sampling& sampling);

/// The samples of an epoch under ids 0, 1, … A unit is one pass over a shard, or the part of it that is
/// drawn.
class EpochSamples {
 public:
  /// Draws `wanted[i]` samples of `streams[i]`. Stored samples are numbered through all streams. If `only` is
  /// not -1, only samples of that stream are included. Requires fewer than 2^32 samples.
  EpochSamples(std::span<const ShardSizes> streams, std::span<const int64_t> wanted, const Sampling& sampling,
               int only = -1);

  std::span<const uint32_t> unit_sizes() const { return sizes_; }
  int64_t size() const { return size_; }
  /// Replaces ids by the numbers of stored samples.
  void to_stored(std::span<uint32_t> ids) const;

 private:
  /// Samples drawn from a shard: a bit for each, and for each word of bits the number of samples before it.
  struct Part {
    std::vector<uint64_t> bits;
    std::vector<uint32_t> before;
    uint32_t select(uint32_t nth) const;
  };
  struct Unit {
    uint32_t first_stored;
    int32_t part;  // -1: all of the shard
  };
  void add_shard(uint32_t size, int64_t chosen, uint32_t first_stored, NumpyRng& rng);

  std::vector<uint32_t> sizes_;
  std::vector<Unit> units_;
  std::vector<Part> parts_;
  RangeIndex unit_of_;
  int64_t size_ = 0;
  bool all_once_ = true;  // ids are stored numbers, `shift_` apart
  uint32_t shift_ = 0;
};

}  // namespace tycho
