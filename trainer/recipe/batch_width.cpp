// Widths are few, so that few models are laid out for them.
#include "trainer/recipe/batch_width.h"

#include <algorithm>

namespace tycho {
namespace {

int64_t rounded_up(int64_t number, int64_t step) { return (number + step - 1) / step * step; }

}  // namespace

int64_t width_step(int64_t seq_len) {
  constexpr int64_t kLeast = 64, kMostWidths = 64;
  return std::max(kLeast, rounded_up(seq_len, kLeast * kMostWidths) / kMostWidths);
}

int64_t batch_width(std::span<const int32_t> lengths, std::span<const uint32_t> rows, int64_t seq_len) {
  if (lengths.empty()) return seq_len;
  int64_t longest = 1;
  for (const uint32_t row : rows) longest = std::max<int64_t>(longest, lengths[row]);
  return std::min(seq_len, rounded_up(longest, width_step(seq_len)));
}

}  // namespace tycho
