// Which examples share a row.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace tycho {

/// Puts examples of these lengths, each from 1 to row_tokens, whole into rows of row_tokens: the longest
/// first, each into the row where it leaves the least space (best fit decreasing). Returns the examples of
/// every row, ascending; rows in the order of their first examples. A pure function.
std::vector<std::vector<uint32_t>> pack_examples(std::span<const int32_t> lengths, int64_t row_tokens);

}  // namespace tycho
