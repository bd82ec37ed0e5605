// Memory is allocated once: on virtual machines its first use can take longer than decompression.
#include "trainer/data/mds/shard_memory.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace tycho {
namespace {

/// Returns the size to allocate, rounded up so that a shard of nearly the same size can use the buffer next.
size_t buffer_bytes(size_t num_bytes) {
  constexpr size_t kPage = HugePages<char>::kPage;
  return num_bytes < kPage ? num_bytes : (num_bytes + kPage - 1) / kPage * kPage;
}

}  // namespace

int ShardMemory::add_source() {
  const std::lock_guard lock(mutex_);
  last_read_.push_back(nullptr);
  return static_cast<int>(last_read_.size()) - 1;
}

int64_t ShardMemory::held_bytes() const {
  const std::lock_guard lock(mutex_);
  return held_bytes_;
}

std::optional<std::span<const char>> ShardMemory::read(const Shard& shard, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  const Entry*& last = last_read_[static_cast<size_t>(shard.source)];
  last = nullptr;
  auto found = entries_.end();
  const auto is_decided = [&] {
    found = entries_.find({shard.source, shard.index});
    return found == entries_.end() || found->second.is_filled;
  };
  if (!filled_.wait(lock, stop, is_decided))
    fail(ExitCode::kTerminated, "[mds] stopped while a shard was decompressed");
  if (found == entries_.end()) return std::nullopt;
  Entry& entry = found->second;
  ++entry.num_reads;
  entry.used_at = ++num_reads_;
  last = &entry;
  return std::span<const char>(entry.buffer).first(shard.num_bytes);
}

void ShardMemory::read_elsewhere() {
  const std::lock_guard lock(mutex_);
  ++num_reads_;
}

bool ShardMemory::bring(const Shard& shard, const std::function<void(std::span<char>)>& fill) {
  const Key key(shard.source, shard.index);
  std::unique_lock lock(mutex_);
  if (const auto found = entries_.find(key); found != entries_.end()) {
    found->second.used_at = num_reads_;
    return true;
  }
  if (left_to_files_.contains(key)) return false;
  std::optional<Buffer> buffer = take_buffer(buffer_bytes(shard.num_bytes));
  if (!buffer) return false;
  Entry& entry = entries_[key];
  entry = {.buffer = std::move(*buffer), .shard = shard, .brought_at = num_reads_, .used_at = num_reads_};
  lock.unlock();
  try {
    fill(std::span(entry.buffer).first(shard.num_bytes));
  } catch (...) {
    lock.lock();
    spares_.push_back(std::move(entry.buffer));
    entries_.erase(key);
    filled_.notify_all();
    throw;
  }
  lock.lock();
  entry.is_filled = true;
  filled_.notify_all();
  return true;
}

bool ShardMemory::is_over(const Entry& entry) const {
  const int64_t time = entry.used_at - entry.brought_at;
  const int64_t between_reads =
      entry.num_reads == 0 ? kWaitForFirst : std::max<int64_t>(1, time / entry.num_reads);
  return num_reads_ - entry.used_at > kPatience * between_reads;
}

std::optional<ShardMemory::Buffer> ShardMemory::take_buffer(size_t num_bytes) {
  do {
    if (std::optional<Buffer> spare = take_spare(num_bytes)) return spare;
    // The other spares are too small; frees them to make room.
    while (held_bytes_ + static_cast<int64_t>(num_bytes) > limit_bytes_ && !spares_.empty()) {
      held_bytes_ -= std::ssize(spares_.back());
      spares_.pop_back();
    }
    if (held_bytes_ + static_cast<int64_t>(num_bytes) <= limit_bytes_) {
      Buffer buffer(num_bytes);
      held_bytes_ += std::ssize(buffer);
      return buffer;
    }
  } while (drop_one());
  return std::nullopt;
}

/// Takes the smallest spare buffer that is large enough.
std::optional<ShardMemory::Buffer> ShardMemory::take_spare(size_t num_bytes) {
  auto best = spares_.end();
  for (auto it = spares_.begin(); it != spares_.end(); ++it)
    if (it->size() >= num_bytes && (best == spares_.end() || it->size() < best->size())) best = it;
  if (best == spares_.end()) return std::nullopt;
  Buffer spare = std::move(*best);
  spares_.erase(best);
  return spare;
}

/// Removes the least recently used shard of those whose samples are over. Returns false when there is none.
bool ShardMemory::drop_one() {
  auto oldest = entries_.end();
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    const Entry& entry = it->second;
    const bool is_in_use = !entry.is_filled || std::ranges::count(last_read_, &entry) > 0;
    if (is_in_use || !is_over(entry)) continue;
    if (oldest == entries_.end() || entry.used_at < oldest->second.used_at) oldest = it;
  }
  if (oldest == entries_.end()) return false;
  Entry& entry = oldest->second;
  if (entry.num_reads < entry.shard.num_samples) left_to_files_.insert(oldest->first);
  spares_.push_back(std::move(entry.buffer));
  entries_.erase(oldest);
  return true;
}

}  // namespace tycho
