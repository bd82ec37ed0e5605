// The thread that writes checkpoints. Torch-free.
#pragma once
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <thread>
#include <utility>

#include "trainer/base/seconds_since.h"

namespace tycho {

/// Runs one job at a time. Owned by one thread.
class WriterThread {
 public:
  /// Result of a job.
  struct End {
    std::exception_ptr failure;
    double seconds = 0;
  };

  WriterThread() = default;
  ~WriterThread() { join(); }
  WriterThread(const WriterThread&) = delete;
  WriterThread& operator=(const WriterThread&) = delete;

  /// Requires that no job is in flight. Without `async` the job runs here, before this returns.
  void start(bool async, std::function<void()> job) {
    if (async)
      thread_ = std::thread([this, job = std::move(job)] { run(job); });
    else
      run(job);
  }
  /// Returns true until join() has returned, even when the job has ended.
  bool is_in_flight() const { return thread_.joinable(); }
  /// Returns true if a job has ended whose end was not taken.
  bool has_ended() const { return has_ended_; }
  /// Waits for the job.
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  /// Requires has_ended() and no job in flight.
  End take_end() {
    has_ended_ = false;
    return std::exchange(end_, {});
  }

 private:
  void run(const std::function<void()>& job) {
    const auto start = std::chrono::steady_clock::now();
    try {
      job();
    } catch (...) {
      end_.failure = std::current_exception();
    }
    end_.seconds = seconds_since(start);
    has_ended_ = true;
  }

  std::thread thread_;
  std::atomic<bool> has_ended_ = false;
  End end_;
};

}  // namespace tycho
