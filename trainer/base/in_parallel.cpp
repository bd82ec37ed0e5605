// Threads take the next number in turn; below a number that failed, all numbers were taken and are finished.
#include "trainer/base/in_parallel.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tycho {

void in_parallel(size_t count, size_t num_threads, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  size_t failed = count;
  std::exception_ptr error;
  const auto take_numbers = [&] {
    for (size_t i; (i = next++) < count;) {
      try {
        work(i);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (i < failed) failed = i, error = std::current_exception();
        next = count;
      }
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (size_t i = 1; i < std::min(count, num_threads); ++i) helpers.emplace_back(take_numbers);
    take_numbers();
  }
  if (error) std::rethrow_exception(error);
}

void in_parallel(size_t count, size_t num_threads, const std::stop_token& stop,
                 const std::function<void(size_t, const std::stop_token&)>& work) {
  const auto ended = std::make_unique<std::stop_source>();  // g++ 12 sees one on the stack as uninitialised
  const std::stop_callback forward(stop, [&] { ended->request_stop(); });
  in_parallel(count, num_threads, [&](size_t i) {
    try {
      work(i, ended->get_token());
    } catch (...) {
      if (ended->request_stop() || stop.stop_requested()) throw;  // else another call has failed before
    }
  });
}

}  // namespace tycho
