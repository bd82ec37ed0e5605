// A bucket is sorted as whole numbers: a position in 32 bits, and behind them its place in the bucket.
#include "trainer/data/order/spread_buckets.h"

#include <emmintrin.h>

#include <algorithm>
#include <numeric>

namespace tycho {

constexpr int kPlaceBits = 32, kFractionBits = 32 - SpreadBuckets::kBits;

SpreadBuckets::SpreadBuckets(int64_t num_open, int64_t num_buckets)
    : last_(num_buckets - 1), filled_(static_cast<size_t>(std::min(num_open, num_buckets))) {
  positions_.resize(filled_.size() * kRoom);
  ids_.resize(filled_.size() * kRoom);
  staged_.resize(filled_.size());
}

// Past the caches: it is read when the bucket has its turn, a few million samples later.
void SpreadBuckets::write_out(size_t slot, size_t at) {
  const Staged& staged = staged_[slot];
  double* const positions = positions_.data() + slot * kRoom + at;
  uint32_t* const ids = ids_.data() + slot * kRoom + at;
  for (size_t i = 0; i < kStaged; i += 2)
    _mm_stream_pd(positions + i, _mm_load_pd(staged.positions.data() + i));
  for (size_t i = 0; i < kStaged; i += 4)
    _mm_stream_si128(reinterpret_cast<__m128i*>(ids + i),
                     _mm_load_si128(reinterpret_cast<const __m128i*>(staged.ids.data() + i)));
}

void SpreadBuckets::take_first(std::vector<uint32_t>& ids) {
  const auto slot = static_cast<size_t>(first_slot_);
  size_t size = filled_[slot];
  const size_t whole = size - size % kStaged;
  std::copy_n(staged_[slot].positions.data(), size - whole, positions_.data() + slot * kRoom + whole);
  std::copy_n(staged_[slot].ids.data(), size - whole, ids_.data() + slot * kRoom + whole);
  const double* positions = positions_.data() + slot * kRoom;
  const uint32_t* sample = ids_.data() + slot * kRoom;
  if (size == kRoom && !spilled_.empty()) {
    bucket_positions_.assign(positions, positions + size);
    bucket_ids_.assign(sample, sample + size);
    const auto here = std::stable_partition(spilled_.begin(), spilled_.end(),
                                            [this](const Spilled& one) { return one.bucket != first_; });
    for (auto one = here; one != spilled_.end(); ++one) {
      bucket_positions_.push_back(one->position);
      bucket_ids_.push_back(one->id);
    }
    spilled_.erase(here, spilled_.end());
    size = bucket_ids_.size();
    positions = bucket_positions_.data();
    sample = bucket_ids_.data();
  }
  // By whole positions, of which there is about one each; then by insertion.
  const auto begin = static_cast<double>(first_ << kBits);
  ends_.assign(kWidth + 1, 0);
  keys_.resize(size);
  sorted_.resize(size);
  for (size_t i = 0; i < size; ++i) {
    const double fixed = std::min((positions[i] - begin) * (1 << kFractionBits), 4294967295.0);
    keys_[i] = static_cast<uint64_t>(static_cast<int64_t>(fixed)) << kPlaceBits | i;
    ++ends_[(keys_[i] >> (kPlaceBits + kFractionBits)) + 1];
  }
  std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
  for (const uint64_t key : keys_) sorted_[ends_[key >> (kPlaceBits + kFractionBits)]++] = key;
  const auto place = [](uint64_t key) { return static_cast<size_t>(key & UINT32_MAX); };
  for (size_t i = 1; i < size; ++i) {
    const uint64_t key = sorted_[i];
    // Positions that agree in 32 bits are compared as they are.
    const auto after = [&](uint64_t other) {
      return other >> kPlaceBits == key >> kPlaceBits ? positions[place(other)] > positions[place(key)]
                                                      : other > key;
    };
    size_t at = i;
    for (; at > 0 && after(sorted_[at - 1]); --at) sorted_[at] = sorted_[at - 1];
    sorted_[at] = key;
  }
  const size_t had = ids.size();
  ids.resize(had + size);
  for (size_t i = 0; i < size; ++i) ids[had + i] = sample[place(sorted_[i])];
  filled_[slot] = 0;
  ++first_;
  first_slot_ = slot + 1 < filled_.size() ? first_slot_ + 1 : 0;
}

}  // namespace tycho
