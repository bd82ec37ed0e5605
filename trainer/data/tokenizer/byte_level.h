// The printable characters that byte-level BPE writes for bytes: "Ġthe" for " the".
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tycho {

/// Returns the code point that stands for a byte: the byte itself if it is printable in Latin-1, else a code
/// point from U+0100 on.
uint32_t byte_level_code(uint8_t byte);

/// Encodes bytes as the text that tokenizer.json holds.
std::string to_byte_level(std::string_view bytes);

/// Inverts to_byte_level. Returns nothing when the text has a character that stands for no byte.
std::optional<std::string> from_byte_level(std::string_view text);

}  // namespace tycho
