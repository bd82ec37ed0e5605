// A sample is a 64-bit number: 32 bits of its position within its bucket, and its id.
#include "trainer/data/order/spread_buckets.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace tycho {
namespace {

/// Adding a position to this number leaves, in the lowest bits of the fraction, the position in units of
/// 2^(kBits - 32), rounded. Rounding never reverses the order of two positions.
constexpr double kUnits = static_cast<double>(uint64_t{1} << (20 + SpreadBuckets::kBits));
/// Half a bin for each sample, so that most samples are alone in their bin.
constexpr int kBinBits = SpreadBuckets::kBits + 1;

size_t bin_of(uint64_t sample) { return static_cast<size_t>(sample >> (64 - kBinBits)); }

}  // namespace

SpreadBuckets::SpreadBuckets(int64_t num_open, int64_t num_buckets, ExactPlaceOf exact_place_of)
    : exact_place_of_(std::move(exact_place_of)),
      num_buckets_(num_buckets),
      num_slots_(static_cast<size_t>(std::min(num_open, num_buckets))),
      next_(num_slots_),
      blocks_(num_slots_),
      ends_((size_t{1} << kBinBits) + 1) {}

void SpreadBuckets::restart_at(int64_t bucket) {
  first_ = bucket;
  first_slot_ = 0;
  for (size_t slot = 0; slot < num_slots_; ++slot) empty(slot);
}

uint64_t* SpreadBuckets::open_block(size_t slot) {
  if (free_.empty()) {
    const size_t count = slabs_.empty() ? kFirstSlab : std::min(2 * slabs_.back().size() / kBlock, kSlab);
    slabs_.emplace_back(count * kBlock);
    for (size_t i = count; i-- > 0;) free_.push_back(slabs_.back().data() + i * kBlock);
  }
  blocks_[slot].push_back(free_.back());
  free_.pop_back();
  return blocks_[slot].back();
}

void SpreadBuckets::empty(size_t slot) {
  free_.insert(free_.end(), blocks_[slot].rbegin(), blocks_[slot].rend());
  blocks_[slot].clear();
  next_[slot] = nullptr;
}

void SpreadBuckets::gather(size_t slot) {
  samples_.clear();
  for (const uint64_t* const block : blocks_[slot]) {
    const bool partly = next_[slot] > block && next_[slot] < block + kBlock;
    samples_.insert(samples_.end(), block, partly ? next_[slot] : block + kBlock);
  }
}

int64_t SpreadBuckets::put(std::span<const double> positions, std::span<const uint32_t> ids) {
  const uint64_t end = (static_cast<uint64_t>(num_buckets_) << 32) - 1;
  int64_t dropped = 0;
  for (size_t i = 0; i < positions.size(); ++i) {
    const uint64_t units =
        std::min(std::bit_cast<uint64_t>(positions[i] + kUnits) - std::bit_cast<uint64_t>(kUnits), end);
    const auto bucket = static_cast<int64_t>(units >> 32);
    if (bucket < first_) [[unlikely]] {
      ++dropped;
      continue;
    }
    size_t slot = first_slot_ + static_cast<size_t>(bucket - first_);
    slot -= slot < num_slots_ ? 0 : num_slots_;
    uint64_t* place = next_[slot];
    if (reinterpret_cast<uintptr_t>(place) % kBlockBytes == 0) [[unlikely]]
      place = open_block(slot);
    __builtin_prefetch(place + 16, 1);  // the line after the next one, thousands of samples before its turn
    *place = units << 32 | ids[i];
    next_[slot] = place + 1;
  }
  return dropped;
}

bool SpreadBuckets::comes_after(uint64_t a, uint64_t b) const {
  if (a >> 32 != b >> 32) return a > b;
  return exact_place_of_(static_cast<uint32_t>(a)) > exact_place_of_(static_cast<uint32_t>(b));
}

// Sorts by bins, two for each sample; then by insertion.
void SpreadBuckets::sort() {
  std::fill(ends_.begin(), ends_.end(), 0u);
  sorted_.resize(samples_.size());
  for (const uint64_t sample : samples_) ++ends_[bin_of(sample) + 1];
  std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
  for (const uint64_t sample : samples_) sorted_[ends_[bin_of(sample)]++] = sample;
  for (size_t i = 1; i < sorted_.size(); ++i) {
    const uint64_t sample = sorted_[i];
    if (sorted_[i - 1] >> 32 < sample >> 32) [[likely]]
      continue;
    size_t at = i;
    for (; at > 0 && comes_after(sorted_[at - 1], sample); --at) sorted_[at] = sorted_[at - 1];
    sorted_[at] = sample;
  }
}

void SpreadBuckets::take_first(IdChunk& ids) {
  gather(first_slot_);
  empty(first_slot_);
  sort();
  const size_t had = ids.size();
  ids.resize(had + sorted_.size());
  for (size_t i = 0; i < sorted_.size(); ++i) ids[had + i] = static_cast<uint32_t>(sorted_[i]);
  ++first_;
  first_slot_ = first_slot_ + 1 < num_slots_ ? first_slot_ + 1 : 0;
}

}  // namespace tycho
