// Width of the rows of a batch whose padding is trimmed.
#pragma once
#include <cstdint>
#include <span>

namespace tycho {

/// Returns the step between widths. A width is a multiple of this step, or seq_len itself: 64 tokens, and
/// more above 4,096, so that there are at most 64 widths.
int64_t width_step(int64_t seq_len);

/// Returns the least width that holds each of the given rows. `lengths`: tokens of all rows without their
/// padding, from 1 to seq_len (RowReader::trimmed_lengths). If `lengths` is empty, the width is seq_len.
int64_t batch_width(std::span<const int32_t> lengths, std::span<const uint32_t> rows, int64_t seq_len);

}  // namespace tycho
