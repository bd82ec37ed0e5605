// A mark takes 64 bytes, and drawing from one to the next less than a millisecond, unless a shuffle takes
// longer.
#include "trainer/data/order/shuffle_series.h"

#include <algorithm>

namespace tycho {

constexpr size_t kBetweenMarks = size_t{1} << 19;  // items

ShuffleSeries::ShuffleSeries(std::vector<uint32_t> sizes, const NumpyRng& rng)
    : sizes_(std::move(sizes)), marks_{{0, rng}}, rng_(rng) {}

NumpyRng ShuffleSeries::before(size_t i) {
  const auto after = std::upper_bound(marks_.begin(), marks_.end(), i, [](size_t shuffle, const Mark& mark) {
    return shuffle < mark.shuffle;
  });
  const bool beyond = after == marks_.end();
  auto [at, rng] = *(after - 1);
  for (size_t items = 0; at < i;) {
    items += sizes_[at];
    rng.skip_shuffle(sizes_[at++]);
    if (beyond && items >= kBetweenMarks) {
      marks_.push_back({at, rng});
      items = 0;
    }
  }
  return rng;
}

}  // namespace tycho
