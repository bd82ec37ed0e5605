// Frames of LZ4: blocks, which may copy from the ones before them.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace tycho {

/// Decodes one frame, which is all of `frame`, and appends the result, at most `most_bytes`, to `out`.
/// Returns false when the frame is damaged, longer, or needs a dictionary. Checksums are not compared.
/// (https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md)
bool decode_lz4_frame(std::string_view frame, size_t most_bytes, std::string& out);

}  // namespace tycho
