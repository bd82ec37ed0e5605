// The printable characters that byte-level BPE writes for bytes: "Ġthe" for " the".
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tycho {

/// The code point that stands for a byte: itself where it is printable in Latin-1, else one from U+0100 on.
uint32_t byte_level_code(uint8_t byte);

/// Bytes as the text that tokenizer.json holds.
std::string to_byte_level(std::string_view bytes);

/// And back; nothing when the text has a character that stands for no byte.
std::optional<std::string> from_byte_level(std::string_view text);

}  // namespace tycho
