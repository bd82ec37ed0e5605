// A queue of shards in the order in which they are first needed.
#include "trainer/data/mds/shard_prefetch.h"

#include <utility>

#include "trainer/base/error.h"

namespace tycho {

ShardPrefetch::ShardPrefetch(int num_threads, BringShard bring)
    : num_threads_(num_threads), bring_(std::move(bring)) {}

void ShardPrefetch::announce(std::span<const size_t> shards) {
  const std::lock_guard lock(mutex_);
  for (const size_t shard : shards)
    if (++unread_[shard] == 1) queue_.push_back(shard);
  // The shards of most batches were announced already; no thread is woken for them.
  if (queue_.empty()) return;
  // Starts the threads only when there is work: many readers read local data or one sample.
  while (std::ssize(threads_) < num_threads_)
    threads_.emplace_back([this](const std::stop_token& stop) { work(stop); });
  changed_.notify_all();
}

void ShardPrefetch::was_read(size_t shard) {
  const std::lock_guard lock(mutex_);
  const auto found = unread_.find(shard);
  if (found != unread_.end() && --found->second == 0) unread_.erase(found);
}

void ShardPrefetch::stop() {
  const std::lock_guard lock(mutex_);
  for (std::jthread& thread : threads_) thread.request_stop();
}

void ShardPrefetch::work(const std::stop_token& stop) {
  const auto is_not_needed = [this](size_t shard) {
    const std::lock_guard lock(mutex_);
    return !unread_.contains(shard);
  };
  while (true) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, stop, [&] { return !queue_.empty(); })) return;
    const size_t shard = queue_.front();
    queue_.pop_front();
    lock.unlock();
    if (stop.stop_requested()) return;
    try {
      if (!is_not_needed(shard)) bring_(shard, stop, is_not_needed);
    } catch (const Error&) {
      // The reader loads the shard itself, and reports the error.
    }
  }
}

}  // namespace tycho
