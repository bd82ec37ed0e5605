// Best fit decreasing, with the free space of rows in an ordered set.
#include "trainer/data/chat/example_packer.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "trainer/base/error.h"

namespace tycho {

std::vector<std::vector<uint32_t>> pack_examples(std::span<const int32_t> lengths, int64_t row_tokens) {
  std::vector<uint32_t> by_length(lengths.size());
  std::iota(by_length.begin(), by_length.end(), 0u);
  std::stable_sort(by_length.begin(), by_length.end(),
                   [&](uint32_t a, uint32_t b) { return lengths[a] > lengths[b]; });
  std::vector<std::vector<uint32_t>> rows;
  std::set<std::pair<int64_t, size_t>> free_space;  // tokens and row
  for (const uint32_t example : by_length) {
    const int64_t length = lengths[example];
    TYCHO_CHECK(length > 0 && length <= row_tokens,
                "[packing] expected examples of 1 to {} tokens, got one of {}", row_tokens, length);
    const auto fit = free_space.lower_bound({length, 0});
    const std::pair<int64_t, size_t> row =
        fit == free_space.end() ? std::pair(row_tokens, rows.size()) : *fit;
    if (fit == free_space.end()) {
      rows.emplace_back();
    } else {
      free_space.erase(fit);
    }
    rows[row.second].push_back(example);
    if (row.first > length) free_space.emplace(row.first - length, row.second);
  }
  for (std::vector<uint32_t>& row : rows) std::sort(row.begin(), row.end());
  std::sort(rows.begin(), rows.end());
  return rows;
}

}  // namespace tycho
