// Runs calls of a group one after the other on a separate thread. Torch-free.
#pragma once
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "trainer/comm/sockets/transfers.h"

namespace tycho {

/// Runs calls of a group one after the other on its own thread, which starts with the first call. Used by one
/// thread.
class Background {
 public:
  using Call = std::function<std::optional<TransferFailure>()>;
  struct State {
    Call call;
    bool is_done = false;
    std::optional<TransferFailure> failure;
  };

  Background() = default;
  /// Waits for the running call, which the caller must have stopped if it could take long. Later calls never
  /// run.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  std::shared_ptr<State> start(Call call);
  std::optional<TransferFailure> wait(const State& state);
  void wait_for_all();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable added_, done_;
  std::deque<std::shared_ptr<State>> calls_;  // the first one is running
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tycho
