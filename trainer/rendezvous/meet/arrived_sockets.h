// Connections that other ranks have opened, kept until this rank asks for them. Torch-free.
#pragma once
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "trainer/rendezvous/socket.h"

namespace tycho {

/// Sockets by purpose and rank. From any thread.
class ArrivedSockets {
 public:
  /// Stores a connection. A newer one replaces an older one: the rank called again.
  void put(const std::string& purpose, int rank, Socket socket) {
    const std::lock_guard lock(mutex_);
    waiting_[{purpose, rank}] = std::move(socket);
    came_.notify_all();
  }

  /// Waits up to `time` for a connection. Returns a closed socket when none came.
  Socket take(const std::string& purpose, int rank, std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    const auto key = std::pair(purpose, rank);
    if (!came_.wait_for(lock, time, [&] { return waiting_.count(key) > 0; })) return {};
    Socket socket = std::move(waiting_.at(key));
    waiting_.erase(key);
    return socket;
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::map<std::pair<std::string, int>, Socket> waiting_;
};

}  // namespace tycho
