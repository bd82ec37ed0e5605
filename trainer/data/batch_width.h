// How wide the rows of a batch are whose padding is trimmed.
#pragma once
#include <cstdint>
#include <span>

namespace tycho {

/// Widths are multiples of it, and seq_len itself: 64 tokens, more above 4,096, so that there are at most 64
/// of them.
int64_t width_step(int64_t seq_len);

/// The least width that holds each of these rows. `lengths`: tokens of all rows without their padding, from 1
/// to seq_len; seq_len where there are none (RowReader::trimmed_lengths).
int64_t batch_width(std::span<const int32_t> lengths, std::span<const uint32_t> rows, int64_t seq_len);

}  // namespace tycho
