// The characters that do something to a terminal instead of being shown.
#pragma once
#include <cstdint>

namespace tycho {

/// Returns true for C0 and C1 controls, DEL, and Unicode's bidirectional controls, which reorder the text
/// around them.
constexpr bool is_terminal_control(uint32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x061C || code == 0x200E || code == 0x200F ||
         (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace tycho
