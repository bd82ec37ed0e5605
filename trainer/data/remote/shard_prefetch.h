// Threads that fetch shards before they are read.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <span>
#include <stop_token>
#include <thread>
#include <unordered_map>
#include <vector>

#include "trainer/data/remote/shard_cache.h"

namespace tycho {

/// Its memory is bounded by the samples that are announced and not yet read. An error of a thread is left to
/// the reader, which meets it when it fetches the shard itself.
class ShardPrefetch {
 public:
  /// `cache` outlives it.
  explicit ShardPrefetch(ShardCache& cache);
  /// Samples of these shards, one entry for each, will be read.
  void announce(std::span<const size_t> shards);
  /// A sample of this shard was read.
  void was_read(size_t shard);
  /// Ends downloads, without waiting. From any thread.
  void stop();

 private:
  void work(const std::stop_token& stop);

  ShardCache& cache_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<size_t> queue_;
  std::unordered_map<size_t, int64_t> unread_;  // announced samples of a shard
  std::vector<std::jthread> threads_;           // last: they stop before what they use goes
};

}  // namespace tycho
