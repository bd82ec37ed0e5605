// Random bytes that nobody can guess. Numbers for training come from philox.h.
#pragma once
#include <string>

namespace tycho {

/// Returns random bytes from the kernel. Throws Error when it has none to give.
std::string random_bytes(size_t num_bytes);

/// Returns random bytes as text: two hex digits for each byte.
std::string random_hex(size_t num_bytes);

}  // namespace tycho
