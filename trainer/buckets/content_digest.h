// Digests of what is uploaded, by libcrypto: as fast as the machine's instructions allow.
#pragma once
#include <string>
#include <string_view>

namespace tycho {

/// Returns the 16 bytes of MD5, which stores compare with Content-MD5.
std::string content_md5(std::string_view bytes);
/// Returns the 32 bytes of SHA-256.
std::string content_sha256(std::string_view bytes);

}  // namespace tycho
