// One block of LZ4, without a frame around it.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace tycho {

/// Appends what `block` stands for, at most `most_bytes`, to `out`; a block copies only what it made itself.
/// False when it is damaged or makes more. `out` grows with what is made, not with what is claimed.
/// (https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md)
bool decode_lz4_block(std::string_view block, size_t most_bytes, std::string& out);

}  // namespace tycho
