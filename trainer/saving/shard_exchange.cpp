// One mutex and one condition for both threads.
#include "trainer/saving/shard_exchange.h"

#include <utility>

namespace tycho {

void ShardExchange::open(const std::string& folder) {
  const std::lock_guard lock(mutex_);
  folder_ = folder;
  changed_.notify_all();
}

std::vector<WrittenShard> ShardExchange::wait_for_others() {
  std::unique_lock lock(mutex_);
  is_waiting_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return others_ || failure_; });
  if (failure_) throw *failure_;
  return *std::exchange(others_, std::nullopt);
}

void ShardExchange::close() {
  const std::lock_guard lock(mutex_);
  is_closed_ = true;
  changed_.notify_all();
}

std::string ShardExchange::wait_for_folder() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !folder_.empty() || is_closed_; });
  return folder_;
}

bool ShardExchange::is_waiting() const {
  const std::lock_guard lock(mutex_);
  return is_waiting_ || is_closed_;
}

void ShardExchange::wait_until_waiting() const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_waiting_ || is_closed_; });
}

void ShardExchange::give(std::vector<WrittenShard> others) {
  const std::lock_guard lock(mutex_);
  others_ = std::move(others);
  changed_.notify_all();
}

void ShardExchange::give_up(const Error& why) {
  const std::lock_guard lock(mutex_);
  if (!others_ && !failure_) failure_ = why;
  changed_.notify_all();
}

}  // namespace tycho
