// Base64 (RFC 4648): bytes as letters, digits, + and /.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace tycho {

/// Returns the bytes in base64, with = at the end.
std::string base64(std::string_view bytes);

/// Returns the bytes of a text in base64, = at the end included; nullopt when it is not one.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace tycho
