// Finds the range that contains a number, in a time that does not depend on the number of ranges.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tycho {

/// Consecutive ranges from 0: range i is [ends[i - 1], ends[i]). Empty ranges hold nothing.
class RangeIndex {
 public:
  RangeIndex() = default;
  explicit RangeIndex(std::vector<uint32_t> ends) : ends_(std::move(ends)) {
    const uint64_t all = ends_.empty() ? 0 : ends_.back();
    while ((all >> shift_) > 4 * (ends_.size() + 1)) ++shift_;
    size_t range = 0;
    for (uint64_t number = 0; number < all; number += uint64_t{1} << shift_) {
      while (ends_[range] <= number) ++range;
      first_.push_back(static_cast<uint32_t>(range));
    }
  }
  size_t operator()(uint32_t number) const {
    size_t range = first_[number >> shift_];
    while (ends_[range] <= number) ++range;
    return range;
  }
  uint32_t begin(size_t range) const { return range == 0 ? 0 : ends_[range - 1]; }

 private:
  std::vector<uint32_t> ends_;
  std::vector<uint32_t> first_;  // range of each multiple of 2^shift
  int shift_ = 0;
};

}  // namespace tycho
