// Samples at positions that are not whole numbers, thrown into buckets of neighbouring ones and given out in
// order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "trainer/data/order/huge_pages.h"
#include "trainer/data/order/id_stream.h"

namespace tycho {

/// Where a sample is to the last bit, and as the how many-th it was put.
struct ExactPlace {
  double position;
  int64_t place;
  auto operator<=>(const ExactPlace&) const = default;
};

/// Buckets 0, 1, … of kWidth positions. Those that are open lie in a ring; the first of them is taken, and
/// another one opens behind the last. A sample takes 8 bytes: 32 bits of its position in the bucket, and its
/// id. Those of one pair in a million that agree in these bits are asked for.
class SpreadBuckets {
 public:
  static constexpr int kBits = 12;
  static constexpr int64_t kWidth = int64_t{1} << kBits;
  using ExactPlaceOf = std::function<ExactPlace(uint32_t id)>;

  /// `num_open` buckets at a time, the first `num_buckets` of all: positions beyond belong to the last one.
  SpreadBuckets(int64_t num_open, int64_t num_buckets, ExactPlaceOf exact_place_of);

  int64_t first() const { return first_; }
  /// Begins anew, with another first bucket.
  void restart_at(int64_t bucket);
  /// Puts each id at its position, which is less than 2^32, and drops those whose bucket is before the first
  /// one. No bucket may lie beyond the open ones. Returns how many were dropped.
  int64_t put(std::span<const double> positions, std::span<const uint32_t> ids);
  /// Appends the ids of the first bucket by their position; those of one position, which NumPy's sort may
  /// order either way, as they were put.
  void take_first(IdChunk& ids);

 private:
  /// Samples of a bucket that lie together. Far buckets have few samples and near ones all: with room for all
  /// in each bucket half the memory would lie idle, and what is not in cache takes longest.
  static constexpr size_t kBlock = 128, kBlockBytes = kBlock * sizeof(uint64_t);
  static_assert(HugePages<uint64_t>::kLeastAlignment % kBlockBytes == 0);
  /// Blocks that are allocated at once: few at first, a huge page when they are many.
  static constexpr size_t kFirstSlab = 64, kSlab = HugePages<uint64_t>::kPage / kBlockBytes;

  uint64_t* open_block(size_t slot);
  void gather(size_t slot);
  void empty(size_t slot);
  void sort();
  bool comes_after(uint64_t a, uint64_t b) const;

  ExactPlaceOf exact_place_of_;
  int64_t num_buckets_, first_ = 0;
  size_t first_slot_ = 0, num_slots_;
  std::vector<uint64_t*> next_;  // where the next sample of a slot goes; at the end of a block: nowhere yet
  std::vector<std::vector<uint64_t*>> blocks_;  // of each slot
  std::vector<uint64_t*> free_;
  std::vector<std::vector<uint64_t, HugePages<uint64_t>>> slabs_;
  // Of one bucket, kept for the next.
  std::vector<uint64_t> samples_, sorted_;
  std::vector<uint32_t> ends_;
};

}  // namespace tycho
