// A series of shuffles by one generator, the first of which can be skipped.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "trainer/data/order/numpy_rng.h"
#include "trainer/data/order/order_marks.h"

namespace tycho {

/// Consecutive shuffles of `sizes` items. The count of numbers that a shuffle draws is known only after
/// drawing them. Drawing is done when needed, and leaves marks so that it is not repeated. A book can hold
/// the marks of all.
class ShuffleSeries {
 public:
  struct Mark {
    size_t shuffle;
    NumpyRng rng;  // generator before the shuffle
  };

  ShuffleSeries(std::vector<uint32_t> sizes, const NumpyRng& rng, MarkBook& book);

  /// Returns the generator before the next shuffle.
  const NumpyRng& rng() {
    if (passed_) rng_ = before(next_);
    passed_ = false;
    return rng_;
  }
  /// Does the next shuffle. Requires as many items as its size.
  template <class T>
  void shuffle(std::span<T> items) {
    rng();
    ++next_;
    rng_.shuffle(items);
  }
  void pass() {
    ++next_;
    passed_ = true;
  }
  /// Goes back to the first shuffle.
  void restart() {
    next_ = 0;
    passed_ = true;
  }
  /// Returns the generator after all shuffles.
  NumpyRng after() { return before(sizes_.size()); }

  std::span<const uint32_t> sizes() const { return sizes_; }
  /// Marks in the order of shuffles. The first is at 0; with a book, the last one is at the end.
  std::span<const Mark> marks() const { return marks_; }
  /// Draws again from the last mark but one to the last, and throws Error if they differ. A wrong number in
  /// any mark before would also show there.
  void check_last_mark() const;

 private:
  NumpyRng before(size_t i);
  void read_marks(MarkBook& book);

  std::vector<uint32_t> sizes_;
  std::vector<Mark> marks_;
  size_t between_;
  size_t next_ = 0;
  NumpyRng rng_;
  bool passed_ = false;  // rng_ is not yet at the next shuffle
};

}  // namespace tycho
