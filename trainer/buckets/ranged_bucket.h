// Reading of whole objects and of long ranges by requests for short ones, for stores on servers.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "trainer/buckets/bucket.h"

namespace tycho {

/// Base of stores that answer requests for ranges.
class RangedBucket : public Bucket {
 public:
  std::optional<std::string> get(const std::string& name, int64_t most_bytes,
                                 const std::stop_token& stop) final;
  /// Has up to 4 requests under way at a time.
  void read(const std::string& name, int64_t offset, std::span<char> out, const std::stop_token& stop) final;

 protected:
  /// Returns at most `count` bytes from `offset` on, "" behind the end; nullopt when the object does not
  /// exist. Called from several threads.
  virtual std::optional<std::string> range(const std::string& name, int64_t offset, size_t count,
                                           const std::stop_token& stop) = 0;
  /// Returns the first `most` bytes, or all.
  std::optional<std::string> first_bytes(const std::string& name, size_t most, const std::stop_token& stop);
};

}  // namespace tycho
