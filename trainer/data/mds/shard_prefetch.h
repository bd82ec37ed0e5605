// Threads that fetch or decompress shards before they are read.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <unordered_map>
#include <vector>

namespace tycho {

/// Returns true if a shard may be evicted. Called from any thread.
using MayEvict = std::function<bool(size_t)>;
/// Loads a shard that is missing. To make room, it removes only shards that `may_evict` allows.
using BringShard = std::function<void(size_t shard, const std::stop_token& stop, const MayEvict& may_evict)>;

/// Loads announced shards ahead, with memory bounded by the samples that are announced and not yet read. An
/// error of a thread is dropped; the reader meets it again when it loads the shard itself.
class ShardPrefetch {
 public:
  ShardPrefetch(int num_threads, BringShard bring);
  /// Announces that samples of these shards will be read; one entry for each sample.
  void announce(std::span<const size_t> shards);
  /// Reports that a sample of this shard was read.
  void was_read(size_t shard);
  /// Ends the work, without waiting. From any thread.
  void stop();

 private:
  void work(const std::stop_token& stop);

  int num_threads_;
  BringShard bring_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<size_t> queue_;
  std::unordered_map<size_t, int64_t> unread_;  // announced samples of a shard
  std::vector<std::jthread> threads_;  // declared last, so that the threads stop before the members that they
                                       // use are destroyed
};

}  // namespace tycho
