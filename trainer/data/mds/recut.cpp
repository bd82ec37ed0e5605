// Integer arithmetic: a row begins at a multiple of its length.
#include "trainer/data/mds/recut.h"

#include <algorithm>

namespace tycho {

std::vector<uint32_t> Recut::shard_rows(std::span<const uint32_t> shard_samples) const {
  int64_t num_samples = 0;
  for (const uint32_t samples : shard_samples) num_samples += samples;
  const int64_t all = num_rows(num_samples);
  // If a shard ends within a row, the rest of the row belongs to the next shard.
  const auto rows_before = [&](int64_t samples) {
    return std::min(all, (samples * sample_tokens + row_tokens - 1) / row_tokens);
  };
  std::vector<uint32_t> rows;
  int64_t end = 0;
  for (const uint32_t samples : shard_samples) {
    const int64_t begin = end;
    end += samples;
    rows.push_back(static_cast<uint32_t>(rows_before(end) - rows_before(begin)));
  }
  std::erase(rows, 0U);  // no row begins in it
  return rows;
}

std::vector<uint32_t> Recut::samples_of(std::span<const uint32_t> rows) const {
  std::vector<uint32_t> samples;
  for (const int64_t row : rows) {
    const int64_t last = ((row + 1) * row_tokens - 1) / sample_tokens;
    for (int64_t sample = first_sample(row); sample <= last; ++sample)
      if (samples.empty() || samples.back() != sample) samples.push_back(static_cast<uint32_t>(sample));
  }
  return samples;
}

}  // namespace tycho
