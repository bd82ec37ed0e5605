// Text of a server inside a message of ours.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace tycho {

/// Returns the beginning of a text, at most `most_bytes`, without secrets and without characters that would
/// begin a new line or steer a terminal. Secrets are masked before the text is cut, so that no half of one is
/// shown.
std::string answer_line(std::string_view text, size_t most_bytes = 300);

}  // namespace tycho
