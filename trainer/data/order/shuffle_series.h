// Many shuffles by one generator, of which the first ones can be passed over.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "trainer/data/order/numpy_rng.h"
#include "trainer/data/order/order_marks.h"

namespace tycho {

/// Shuffles of so many items, one after the other. How many numbers a shuffle draws is only known when they
/// are drawn: that is done when it is needed, and marks are left so that it is not done again. A book can
/// have the marks of all.
class ShuffleSeries {
 public:
  struct Mark {
    size_t shuffle;
    NumpyRng rng;  // before it
  };

  ShuffleSeries(std::vector<uint32_t> sizes, const NumpyRng& rng, MarkBook& book);

  /// The generator before the next shuffle.
  const NumpyRng& rng() {
    if (passed_) rng_ = before(next_);
    passed_ = false;
    return rng_;
  }
  /// The next shuffle, of as many items as it has.
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
  /// Back to the first one.
  void restart() {
    next_ = 0;
    passed_ = true;
  }
  /// The generator after all of them.
  NumpyRng after() { return before(sizes_.size()); }

  std::span<const uint32_t> sizes() const { return sizes_; }
  /// By shuffle; the first is 0, and the last the end when a book was used.
  std::span<const Mark> marks() const { return marks_; }
  /// Draws again from the last mark but one, which no wrong number before it would survive.
  void check_last_mark() const;

 private:
  NumpyRng before(size_t i);
  void read_marks(MarkBook& book);

  std::vector<uint32_t> sizes_;
  std::vector<Mark> marks_;
  size_t between_;
  size_t next_ = 0;
  NumpyRng rng_;
  bool passed_ = false;  // rng_ is not yet where the next shuffle begins
};

}  // namespace tycho
