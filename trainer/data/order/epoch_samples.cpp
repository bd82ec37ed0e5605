// get_sampling and resample_streams of mosaicml-streaming, with a bit per sample instead of a list.
#include "trainer/data/order/epoch_samples.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "trainer/base/error.h"

namespace tycho {

std::vector<int64_t> draw_from_shards(std::span<const uint32_t> shard_sizes, int64_t wanted,
                                      const Sampling& sampling) {
  const int64_t all = std::accumulate(shard_sizes.begin(), shard_sizes.end(), int64_t{0});
  std::vector<int64_t> chosen;
  for (const uint32_t size : shard_sizes) chosen.push_back(size * (wanted / all));
  int64_t left = wanted % all;
  if (left == 0) return chosen;
  std::vector<uint32_t> ends;  // end of each shard's picks
  uint32_t num_picks = 0;
  for (const uint32_t size : shard_sizes) {
    num_picks += static_cast<uint32_t>((size + sampling.granularity - 1) / sampling.granularity);
    ends.push_back(num_picks);
  }
  std::vector<uint32_t> picks(num_picks);
  std::iota(picks.begin(), picks.end(), 0u);
  NumpyRng(sampling.seed).shuffle(std::span(picks));
  const RangeIndex shard_of(ends);
  for (const uint32_t pick : picks) {
    const size_t shard = shard_of(pick);
    const int64_t before =
        (pick - shard_of.begin(shard)) * sampling.granularity;  // the last pick may be smaller
    const int64_t taken = std::min({left, sampling.granularity, shard_sizes[shard] - before});
    chosen[shard] += taken;
    left -= taken;
    if (left == 0) break;
  }
  return chosen;
}

uint32_t EpochSamples::Part::select(uint32_t nth) const {
  const auto word = std::upper_bound(before.begin(), before.end(), nth) - before.begin() - 1;
  uint64_t rest = bits[static_cast<size_t>(word)];
  for (uint32_t i = before[static_cast<size_t>(word)]; i < nth; ++i) rest &= rest - 1;
  return static_cast<uint32_t>(word * 64 + std::countr_zero(rest));
}

void EpochSamples::add_shard(uint32_t size, int64_t chosen, uint32_t first_stored, NumpyRng& rng) {
  for (int64_t pass = 0; pass < chosen / size; ++pass) {
    sizes_.push_back(size);
    units_.push_back({first_stored, -1});
  }
  const int64_t rest = chosen % size;
  all_once_ = all_once_ && chosen == size;
  size_ += chosen;
  if (rest == 0) return;
  Part part;
  part.bits.resize((size + 63) / 64);
  for (const int64_t sample : rng.choice(size, rest))
    part.bits[static_cast<size_t>(sample / 64)] |= uint64_t{1} << (sample % 64);
  uint32_t before = 0;
  for (const uint64_t word : part.bits) {
    part.before.push_back(before);
    before += static_cast<uint32_t>(std::popcount(word));
  }
  sizes_.push_back(static_cast<uint32_t>(rest));
  units_.push_back({first_stored, static_cast<int32_t>(parts_.size())});
  parts_.push_back(std::move(part));
}

EpochSamples::EpochSamples(std::span<const ShardSizes> streams, std::span<const int64_t> wanted,
                           const Sampling& sampling, int only) {
  NumpyRng rng(sampling.samples_seed);
  uint32_t first_stored = 0;
  for (size_t i = 0; i < streams.size(); ++i) {
    if (only >= 0 && static_cast<int>(i) != only) {
      first_stored += std::accumulate(streams[i].begin(), streams[i].end(), 0u);
      continue;
    }
    if (only >= 0) shift_ = first_stored;
    const std::vector<int64_t> chosen = draw_from_shards(streams[i], wanted[i], sampling);
    TYCHO_CHECK(wanted[i] + size_ < int64_t{1} << 32, "[order] an epoch may have at most 2^32-1 samples");
    for (size_t shard = 0; shard < chosen.size(); ++shard) {
      add_shard(streams[i][shard], chosen[shard], first_stored, rng);
      first_stored += streams[i][shard];
    }
  }
  std::vector<uint32_t> ends(sizes_.size());
  std::partial_sum(sizes_.begin(), sizes_.end(), ends.begin());
  unit_of_ = RangeIndex(std::move(ends));
}

void EpochSamples::to_stored(std::span<uint32_t> ids) const {
  if (all_once_) {
    if (shift_ == 0) return;
    for (uint32_t& id : ids) id += shift_;
    return;
  }
  for (uint32_t& id : ids) {
    const size_t unit = unit_of_(id);
    const uint32_t nth = id - unit_of_.begin(unit);
    const auto& [first_stored, part] = units_[unit];
    id = first_stored + (part < 0 ? nth : parts_[static_cast<size_t>(part)].select(nth));
  }
}

}  // namespace tycho
