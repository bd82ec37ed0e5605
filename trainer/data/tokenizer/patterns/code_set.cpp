// Sorted ranges, and a bit per ASCII character.
#include "trainer/data/tokenizer/patterns/code_set.h"

#include <algorithm>

namespace tycho {

CodeSet::CodeSet(std::vector<CodeRange> ranges) {
  const auto by_first = [](CodeRange a, CodeRange b) { return a.first < b.first; };
  if (!std::is_sorted(ranges.begin(), ranges.end(), by_first))
    std::sort(ranges.begin(), ranges.end(), by_first);
  for (const CodeRange range : ranges) {
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1) {
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    } else {
      ranges_.push_back(range);
    }
  }
  for (uint32_t code = 0; code < 128; ++code)
    if (contains_wide(code)) ascii_[code >> 6] |= uint64_t{1} << (code & 63);
}

bool CodeSet::contains_wide(uint32_t code) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), code,
                                      [](uint32_t value, CodeRange range) { return value < range.first; });
  return after != ranges_.begin() && code <= std::prev(after)->last;
}

CodeSet CodeSet::united(const CodeSet& other) const {
  std::vector<CodeRange> ranges(ranges_.size() + other.ranges_.size());
  std::merge(ranges_.begin(), ranges_.end(), other.ranges_.begin(), other.ranges_.end(), ranges.begin(),
             [](CodeRange a, CodeRange b) { return a.first < b.first; });
  return CodeSet(std::move(ranges));
}

CodeSet CodeSet::complement() const {
  std::vector<CodeRange> ranges;
  uint32_t next = 0;
  for (const CodeRange range : ranges_) {
    if (range.first > next) ranges.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next < kCodePoints) ranges.push_back({next, kCodePoints - 1});
  return CodeSet(std::move(ranges));
}

bool CodeSet::operator==(const CodeSet& other) const {
  return std::equal(ranges_.begin(), ranges_.end(), other.ranges_.begin(), other.ranges_.end(),
                    [](CodeRange a, CodeRange b) { return a.first == b.first && a.last == b.last; });
}

}  // namespace tycho
