// A mark in memory takes 64 bytes.
#include "trainer/data/order/shuffle_series.h"

#include <algorithm>

namespace tycho {

ShuffleSeries::ShuffleSeries(std::vector<uint32_t> sizes, const NumpyRng& rng, MarkBook& book)
    : sizes_(std::move(sizes)), marks_{{0, rng}}, between_(book.between()), rng_(rng) {
  if (book.use() == MarkBook::Use::kNote) {
    after();
    for (size_t i = 1; i < marks_.size(); ++i) book.note(marks_[i].rng.words_since(marks_[i - 1].rng));
  } else if (book.use() == MarkBook::Use::kRead) {
    read_marks(book);
    if (book.at_end()) check_last_mark();
  }
}

NumpyRng ShuffleSeries::before(size_t i) {
  const auto after = std::upper_bound(marks_.begin(), marks_.end(), i, [](size_t shuffle, const Mark& mark) {
    return shuffle < mark.shuffle;
  });
  const bool beyond = after == marks_.end();
  auto [at, rng] = *(after - 1);
  for (size_t items = 0; at < i;) {
    items += sizes_[at];
    rng.skip_shuffle(sizes_[at++]);
    if (beyond && (items >= between_ || at == sizes_.size())) {
      marks_.push_back({at, rng});
      items = 0;
    }
  }
  return rng;
}

void ShuffleSeries::read_marks(MarkBook& book) {
  NumpyRng rng = rng_;
  for (size_t at = 0, items = 0; at < sizes_.size();) {
    items += sizes_[at++];
    if (items < between_ && at < sizes_.size()) continue;
    rng.skip32(book.read());
    marks_.push_back({at, rng});
    items = 0;
  }
}

void ShuffleSeries::check_last_mark() const {
  if (marks_.size() < 2) return;
  auto [at, rng] = marks_[marks_.size() - 2];
  while (at < marks_.back().shuffle) rng.skip_shuffle(sizes_[at++]);
  if (rng != marks_.back().rng) MarkBook::do_not_fit();
}

}  // namespace tycho
