// A condition that never comes, so that only a stop ends the wait early.
#include "trainer/http/retry_wait.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <random>

namespace tycho {

bool wait_to_retry(double seconds, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, std::chrono::duration<double>(seconds), [] { return false; });
  return !stop.stop_requested();
}

double with_jitter(double seconds) {
  thread_local std::minstd_rand generator(std::random_device{}());
  return seconds * std::uniform_real_distribution<double>(0.5, 1.0)(generator);
}

}  // namespace tycho
