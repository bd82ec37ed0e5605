// Base64 (RFC 4648): bytes as letters, digits, + and /.
#pragma once
#include <string>
#include <string_view>

namespace tycho {

/// Returns the bytes in base64, with = at the end.
std::string base64(std::string_view bytes);

}  // namespace tycho
