// Checksums for files and identities for configs: XXH3-128.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tycho {

/// Returns XXH3-128 as 32 hex digits, the text that `xxh128sum` prints.
std::string hash_hex(std::string_view bytes);

/// Computes hash_hex of bytes that arrive in pieces.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  void update(const void* data, size_t num_bytes);
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tycho
