// Decides which examples share a row.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace tycho {

/// Packs whole examples into rows of row_tokens. Each length is from 1 to row_tokens. The longest examples
/// come first, and each goes into the row where it leaves the least space (best fit decreasing). Returns the
/// examples of every row, ascending; rows are in the order of their first examples. A pure function.
std::vector<std::vector<uint32_t>> pack_examples(std::span<const int32_t> lengths, int64_t row_tokens);

}  // namespace tycho
