// Samples at positions that are not whole numbers, thrown into buckets of neighbouring ones and given out in
// order.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "trainer/data/order/huge_pages.h"

namespace tycho {

/// Buckets 0, 1, … of kWidth positions. Those that are open lie in a ring; the first of them is taken, and
/// another one opens behind the last.
class SpreadBuckets {
 public:
  static constexpr int kBits = 12;
  static constexpr int64_t kWidth = int64_t{1} << kBits;

  /// `num_open` buckets at a time, the first `num_buckets` of all: positions beyond belong to the last one.
  SpreadBuckets(int64_t num_open, int64_t num_buckets);

  int64_t first() const { return first_; }
  /// Only before anything is put.
  void start_at(int64_t bucket) { first_ = bucket; }
  /// Drops a sample whose bucket is before the first one, and says so. No bucket may lie beyond the open
  /// ones.
  bool put(double position, uint32_t id) {
    const int64_t bucket = std::min(static_cast<int64_t>(position) >> kBits, last_);
    if (bucket < first_) return false;
    auto slot = static_cast<size_t>(first_slot_ + bucket - first_);
    slot -= slot < filled_.size() ? 0 : filled_.size();
    const size_t at = filled_[slot];
    if (at == kRoom) {
      spilled_.push_back({bucket, position, id});
      return true;
    }
    Staged& staged = staged_[slot];
    staged.positions[at % kStaged] = position;
    staged.ids[at % kStaged] = id;
    filled_[slot] = static_cast<uint32_t>(at + 1);
    if (at % kStaged == kStaged - 1) write_out(slot, at + 1 - kStaged);
    return true;
  }
  /// Appends the ids of the first bucket by their position; those of one position, which NumPy's sort may
  /// order either way, as they were put.
  void take_first(std::vector<uint32_t>& ids);

 private:
  /// Of a bucket; about kWidth are put, up to 1.2 times as many at the beginning and the end of a node.
  static constexpr size_t kRoom = kWidth * 21 / 16;
  static constexpr size_t kStaged = 16;
  /// What a bucket got last: thousands of buckets are written by turns, and only these lines stay in cache.
  struct alignas(64) Staged {
    std::array<double, kStaged> positions;
    std::array<uint32_t, kStaged> ids;
  };
  struct Spilled {
    int64_t bucket;
    double position;
    uint32_t id;
  };

  void write_out(size_t slot, size_t at);

  int64_t last_, first_ = 0;
  int64_t first_slot_ = 0;
  std::vector<double, HugePages<double>> positions_;  // kRoom for each slot
  std::vector<uint32_t, HugePages<uint32_t>> ids_;    // likewise
  std::vector<Staged> staged_;
  std::vector<uint32_t> filled_;
  std::vector<Spilled> spilled_;  // what found its bucket full
  // Of one bucket, kept for the next.
  std::vector<double> bucket_positions_;
  std::vector<uint32_t> bucket_ids_, ends_;
  std::vector<uint64_t> keys_, sorted_;
};

}  // namespace tycho
