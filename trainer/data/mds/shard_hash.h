// Checksums of shards, by the names that mosaicml-streaming uses.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

/// Names of all checksums. Where a shard has several, the first of these is used: fast ones that find any
/// change come first. xxh3_128, xxh128 (the same), xxh3_64, xxh64, blake2b, sha256 ..., md5, xxh32.
const std::vector<std::string>& shard_hash_names();

/// Returns the number of hex digits of a checksum; 0 when the name is unknown.
size_t shard_hash_digits(std::string_view name);

/// Computes a checksum over pieces. Owned by one thread.
class ShardHasher {
 public:
  /// Throws Error (kUnusable) that lists the names when `name` is unknown.
  explicit ShardHasher(std::string_view name);
  ~ShardHasher();
  ShardHasher(const ShardHasher&) = delete;
  void update(const void* data, size_t num_bytes);
  /// Returns lower-case hex digits. Call it once, at the end.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string shard_hash(std::string_view name, std::string_view bytes);

}  // namespace tycho
