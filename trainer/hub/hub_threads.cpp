// The calling thread works, too.
#include "trainer/hub/hub_threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace tycho {

void in_parallel(size_t count, size_t most_threads, const std::function<void(size_t)>& act) {
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      for (size_t i; (i = next.fetch_add(1)) < count;) act(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      next = count;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < std::min(count, most_threads); ++i) threads.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace tycho
