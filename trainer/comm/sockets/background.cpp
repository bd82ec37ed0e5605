// A queue, and the thread that empties it.
#include "trainer/comm/sockets/background.h"

#include <utility>

namespace tycho {

Background::~Background() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  added_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<Background::State> Background::start(Call call) {
  auto state = std::make_shared<State>();
  state->call = std::move(call);
  {
    const std::lock_guard lock(mutex_);
    calls_.push_back(state);
  }
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  added_.notify_one();
  return state;
}

std::optional<TransferFailure> Background::wait(const State& state) {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return state.is_done; });
  return state.failure;
}

void Background::wait_for_all() {
  if (!thread_.joinable()) return;
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return calls_.empty(); });
}

void Background::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    added_.wait(lock, [&] { return ends_ || !calls_.empty(); });
    if (ends_) return;
    const std::shared_ptr<State> state = calls_.front();
    lock.unlock();
    std::optional<TransferFailure> failure = state->call();
    state->call = {};  // releases the tensors that it holds
    lock.lock();
    state->failure = std::move(failure);
    state->is_done = true;
    calls_.pop_front();
    done_.notify_all();
  }
}

}  // namespace tycho
