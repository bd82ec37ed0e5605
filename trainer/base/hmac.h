// SHA-256 and HMAC-SHA256: how one process proves to another that it knows a secret.
#pragma once
#include <string>
#include <string_view>

namespace tycho {

inline constexpr size_t kDigestBytes = 32;

/// 32 bytes.
std::string sha256(std::string_view bytes);

/// 32 bytes; RFC 2104.
std::string hmac_sha256(std::string_view key, std::string_view bytes);

/// Two lower-case digits for each byte.
std::string hex(std::string_view bytes);

/// Takes as long for texts that differ in the first byte as for equal ones.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace tycho
