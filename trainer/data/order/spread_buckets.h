// Sorts samples at fractional positions: puts them into buckets of neighbouring positions and returns them in
// order.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "trainer/base/huge_pages.h"
#include "trainer/data/order/id_stream.h"

namespace tycho {

/// Exact position of a sample, and its rank in the order in which samples were put.
struct SortKey {
  double position;
  int64_t place;
  auto operator<=>(const SortKey&) const = default;
};

/// Buckets 0, 1, … of kWidth positions. Open buckets form a ring: the first one is taken, and another opens
/// after the last. A sample takes 8 bytes: 32 bits of its position in the bucket, and its id. For the one
/// pair in a million that agrees in these bits, the exact positions are asked for.
class SpreadBuckets {
 public:
  static constexpr int kBits = 12;
  static constexpr int64_t kWidth = int64_t{1} << kBits;
  using ExactPlaceOf = std::function<SortKey(uint32_t id)>;

  /// `num_open` buckets at a time, the first `num_buckets` of all: positions beyond belong to the last one.
  SpreadBuckets(int64_t num_open, int64_t num_buckets, ExactPlaceOf exact_place_of);

  int64_t first() const { return first_; }
  /// Restarts with another first bucket.
  void restart_at(int64_t bucket);
  /// Puts each id at its position, which is less than 2^32, and drops ids whose bucket is before the first
  /// one. Requires that no bucket is beyond the open ones. Returns the number of dropped ids.
  int64_t put(std::span<const double> positions, std::span<const uint32_t> ids);
  /// Appends the ids of the first bucket by their position. Ids of equal positions, which NumPy's sort may
  /// order either way, keep the order in which they were put.
  void take_first(IdChunk& ids);

 private:
  /// Samples of a bucket are stored in blocks. Far buckets have few samples and near ones all: room for all
  /// samples in each bucket would leave half the memory unused, and cache misses take most of the time.
  static constexpr size_t kBlock = 128, kBlockBytes = kBlock * sizeof(uint64_t);
  static_assert(HugePages<uint64_t>::kLeastAlignment % kBlockBytes == 0);
  /// Number of blocks that are allocated at once: few at first, a huge page when there are many.
  static constexpr size_t kFirstSlab = 64, kSlab = HugePages<uint64_t>::kPage / kBlockBytes;

  uint64_t* open_block(size_t slot);
  void gather(size_t slot);
  void empty(size_t slot);
  void sort();
  bool comes_after(uint64_t a, uint64_t b) const;

  ExactPlaceOf exact_place_of_;
  int64_t num_buckets_, first_ = 0;
  size_t first_slot_ = 0, num_slots_;
  std::vector<uint64_t*> next_;  // address of each slot's next sample; nullptr or the end of a block if the
                                 // next block is not open yet
  std::vector<std::vector<uint64_t*>> blocks_;  // blocks of each slot
  std::vector<uint64_t*> free_;
  std::vector<std::vector<uint64_t, HugePages<uint64_t>>> slabs_;
  // Buffers for one bucket, kept for the next.
  std::vector<uint64_t> samples_, sorted_;
  std::vector<uint32_t> ends_;
};

}  // namespace tycho
