// One block of LZ4, without a frame around it.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace tycho {

/// Decodes `block` and appends the result, at most `most_bytes`, to `out`. A block copies only from its own
/// output, and from the `history` bytes before it in `out`. Returns false when the block is damaged or
/// longer. `out` grows with the output, not with a claimed size.
/// (https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md)
bool decode_lz4_block(std::string_view block, size_t most_bytes, std::string& out, size_t history = 0);

}  // namespace tycho
