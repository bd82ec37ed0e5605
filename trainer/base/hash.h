// Checksums for files and identities for configs: XXH3-128.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tycho {

/// XXH3-128 as 32 hex digits, the same text as `xxh128sum` prints.
std::string hash_hex(std::string_view bytes);

/// The same over pieces.
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
