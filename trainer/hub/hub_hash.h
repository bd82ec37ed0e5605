// Hashes of files on the hub: SHA-256 of large ones, the SHA-1 of git's blob for others.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "trainer/hub/hub_files.h"

namespace tycho {

/// Computes the hash of a file whose bytes arrive in pieces.
class HubHasher {
 public:
  /// Chooses the hash that `file` has.
  explicit HubHasher(const HubFile& file);
  ~HubHasher();
  HubHasher(const HubHasher&) = delete;
  void update(const void* data, size_t num_bytes);
  /// Returns lower-case hex digits. Call once.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns the hash of a file on the disk, as for `file`. Throws Error (kUnusable) if it cannot be read.
std::string hub_hash_of(const std::string& path, const HubFile& file);

}  // namespace tycho
