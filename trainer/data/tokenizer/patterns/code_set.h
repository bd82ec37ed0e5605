// A set of code points, such as [^\s\p{L}] of a regular expression.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "trainer/data/tokenizer/patterns/unicode_categories.h"

namespace tycho {

class CodeSet {
 public:
  CodeSet() = default;
  /// `ranges` may be in any order.
  explicit CodeSet(std::vector<CodeRange> ranges);

  bool contains(uint32_t code) const {
    if (code < 128) return (ascii_[code >> 6] >> (code & 63) & 1) != 0;
    return contains_wide(code);
  }
  CodeSet united(const CodeSet& other) const;
  CodeSet complement() const;
  const std::vector<CodeRange>& ranges() const { return ranges_; }
  bool operator==(const CodeSet& other) const;

 private:
  bool contains_wide(uint32_t code) const;

  std::vector<CodeRange> ranges_;  // sorted and disjoint, without adjacent ranges
  std::array<uint64_t, 2> ascii_{};
};

}  // namespace tycho
