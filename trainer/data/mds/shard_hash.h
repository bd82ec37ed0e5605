// Checksums of shards, by the names that mosaicml-streaming uses.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

/// All names, in the order in which one is chosen where a shard has several: the fastest that find any change
/// first. xxh3_128, xxh128 (the same), xxh3_64, xxh64, blake2b, sha256 ..., md5, xxh32.
const std::vector<std::string>& shard_hash_names();

/// Hex digits of one checksum; 0 when there is none of that name.
size_t shard_hash_digits(std::string_view name);

/// A checksum over pieces. Owned by one thread.
class ShardHasher {
 public:
  /// Throws Error (kUnusable) that lists the names when there is none of that name.
  explicit ShardHasher(std::string_view name);
  ~ShardHasher();
  ShardHasher(const ShardHasher&) = delete;
  void update(const void* data, size_t num_bytes);
  /// Lower-case hex digits. Once, at the end.
  std::string hex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

std::string shard_hash(std::string_view name, std::string_view bytes);

}  // namespace tycho
