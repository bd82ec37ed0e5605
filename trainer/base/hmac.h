// SHA-256 and HMAC-SHA256: how one process proves to another that it knows a secret.
#pragma once
#include <string>
#include <string_view>

namespace tycho {

inline constexpr size_t kDigestBytes = 32;

/// Returns the 32 bytes of the digest.
std::string sha256(std::string_view bytes);

/// Returns the 32 bytes of the code (RFC 2104).
std::string hmac_sha256(std::string_view key, std::string_view bytes);

/// Returns two lower-case hex digits for each byte.
std::string hex(std::string_view bytes);

/// Compares two texts in a time that does not depend on where they differ.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace tycho
