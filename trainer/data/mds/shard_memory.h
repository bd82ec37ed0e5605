// Decompressed shards in a bounded amount of memory, whose buffers are reused for later shards.
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

#include "trainer/base/huge_pages.h"

namespace tycho {

/// Shared by the sources of a data set; from any thread. A shard stays until another one needs the memory and
/// its own samples seem to be over: no sample was read for kPatience times the average time between its
/// reads. If some of its samples were not read by then, the shard is not loaded again: it is read from files,
/// which stay. Therefore no order of samples makes a shard be decompressed over and over for a few samples,
/// even where other processes read the rest.
class ShardMemory {
 public:
  explicit ShardMemory(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  ShardMemory(const ShardMemory&) = delete;

  /// Returns the number of a new source. Sources do not share shards.
  int add_source();

  struct Shard {
    int source = 0;
    size_t index = 0;
    int64_t num_samples = 0;
    size_t num_bytes = 0;
  };
  /// Returns a loaded shard to read one of its samples, valid until the next call for this source; nothing if
  /// it is not loaded. Waits while another thread fills it. Throws Error (kTerminated) on a stop.
  std::optional<std::span<const char>> read(const Shard& shard, const std::stop_token& stop);
  /// Counts a sample that was read from a file: reads are the time by which shards age.
  void read_elsewhere();
  /// Loads a shard, unless it is loaded or another thread fills it. Returns false when there is no memory for
  /// it. Errors of `fill`, which writes its bytes, reach the caller; the shard is then not loaded.
  bool bring(const Shard& shard, const std::function<void(std::span<char>)>& fill);
  /// Bytes of all shards, and of spare buffers for the next ones.
  int64_t held_bytes() const;

 private:
  using Buffer = std::vector<char, HugePages<char>>;
  using Key = std::pair<int, size_t>;
  struct Entry {
    Buffer buffer;
    Shard shard;
    bool is_filled = false;
    int64_t num_reads = 0, brought_at = 0, used_at = 0;  // times: number of samples read so far
  };

  bool is_over(const Entry& entry) const;
  std::optional<Buffer> take_buffer(size_t num_bytes);
  std::optional<Buffer> take_spare(size_t num_bytes);
  bool drop_one();

  static constexpr int64_t kPatience = 64;
  static constexpr int64_t kWaitForFirst = 1 << 14;  // time between reads that is assumed before the first
                                                     // read

  int64_t limit_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable_any filled_;
  int64_t num_reads_ = 0;       // number of samples read so far
  int64_t held_bytes_ = 0;      // bytes of entries and spares
  std::vector<Buffer> spares_;  // buffers of removed shards
  std::map<Key, Entry> entries_;
  std::vector<const Entry*> last_read_;  // by source
  std::set<Key> left_to_files_;
};

}  // namespace tycho
