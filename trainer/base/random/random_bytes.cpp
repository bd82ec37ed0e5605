// Reads getrandom until it has enough.
#include "trainer/base/random/random_bytes.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

#include "trainer/base/error.h"

namespace tycho {

std::string random_bytes(size_t num_bytes) {
  std::string bytes(num_bytes, '\0');
  for (size_t at = 0; at < num_bytes;) {
    const ssize_t n = getrandom(bytes.data() + at, num_bytes - at, 0);
    if (n < 0 && errno != EINTR)
      fail(ExitCode::kFailure, "[random] the kernel gives no random bytes: {}", std::strerror(errno));
    if (n > 0) at += static_cast<size_t>(n);
  }
  return bytes;
}

std::string random_hex(size_t num_bytes) {
  std::string text;
  for (const char byte : random_bytes(num_bytes))
    text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

}  // namespace tycho
