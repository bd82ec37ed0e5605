// Decompressed shards in memory: a bounded number of bytes, which are used again for the next shard.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <utility>
#include <vector>

#include "trainer/data/order/huge_pages.h"

namespace tycho {

/// Shared by the sources of a data set; from any thread. A shard stays until another one needs the room and
/// its own samples seem to be over: none was read for kPatience times as long as it took from one to the
/// next. If some of them were not read by then, it does not come back, but is left to files, which stay. So
/// no order of samples has a shard decompressed over and over for a few of them, also where others read the
/// rest.
class ShardMemory {
 public:
  explicit ShardMemory(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  ShardMemory(const ShardMemory&) = delete;

  /// A number for a source, whose shards are not those of another.
  int add_source();

  struct Shard {
    int source = 0;
    size_t index = 0;
    int64_t num_samples = 0;
    size_t num_bytes = 0;
  };
  /// A shard that is there, for one of its samples: valid until the next call for this source. Waits while
  /// another thread fills it. Throws Error (kTerminated) on a stop.
  std::optional<std::span<const char>> read(const Shard& shard, const std::stop_token& stop);
  /// A sample was read from a file: time passes for the shards in memory.
  void read_elsewhere();
  /// Brings a shard, unless it is there or another thread fills it. False when there is no room for it. An
  /// error of `fill`, which makes its bytes, reaches the caller, and the shard is not there.
  bool bring(const Shard& shard, const std::function<void(std::span<char>)>& fill);
  /// Of all shards, and of the room that waits for the next one.
  int64_t held_bytes() const;

 private:
  using Buffer = std::vector<char, HugePages<char>>;
  using Key = std::pair<int, size_t>;
  struct Entry {
    Buffer buffer;
    Shard shard;
    bool is_filled = false;
    int64_t num_reads = 0, brought_at = 0, used_at = 0;  // times: in samples that were read
  };

  bool is_over(const Entry& entry) const;
  std::optional<Buffer> take_buffer(size_t num_bytes);
  std::optional<Buffer> take_spare(size_t num_bytes);
  bool drop_one();

  static constexpr int64_t kPatience = 64;
  static constexpr int64_t kWaitForFirst = 1 << 14;  // counts as the time between reads before there was one

  int64_t limit_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable_any filled_;
  int64_t num_reads_ = 0;       // of samples
  int64_t held_bytes_ = 0;      // by entries and spares
  std::vector<Buffer> spares_;  // of shards that are gone
  std::map<Key, Entry> entries_;
  std::vector<const Entry*> last_read_;  // of each source
  std::set<Key> left_to_files_;
};

}  // namespace tycho
