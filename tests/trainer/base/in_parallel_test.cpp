// Numbers that several threads take, and the exception of the lowest or first that fails.
#include "trainer/base/in_parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

namespace tycho {
namespace {

TEST(InParallel, TakesEveryNumberOnce) {
  for (const size_t count : {0, 1, 3, 100})
    for (const size_t num_threads : {0, 1, 4, 200}) {
      std::vector<std::atomic<int>> times(count);
      in_parallel(count, num_threads, [&](size_t i) { ++times[i]; });
      for (const auto& one : times) EXPECT_EQ(one, 1);
    }
}

TEST(InParallel, BeginsNoCallAfterAnException) {
  std::atomic<int> num_begun = 0;
  const auto work = [&](size_t) {
    ++num_begun;
    throw std::runtime_error("no");
  };
  EXPECT_THROW(in_parallel(1000, 4, work), std::runtime_error);
  EXPECT_LE(num_begun, 4);
}

TEST(InParallel, ThrowsTheExceptionOfTheLowestNumberHoweverLateItComes) {
  std::atomic<bool> later_failed = false;
  const auto work = [&](size_t i) {
    if (i == 2) {
      while (!later_failed) std::this_thread::yield();
      throw std::runtime_error("2");
    }
    if (i == 5) {
      later_failed = true;
      throw std::runtime_error("5");
    }
  };
  try {
    in_parallel(1000, 2, work);
    FAIL() << "expected an exception";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "2");
  }
}

TEST(InParallel, AFailureStopsTheOtherCallsAndIsTheOneThatIsThrown) {
  std::atomic<bool> waits = false;
  const auto work = [&](size_t i, const std::stop_token& stop) {
    if (i == 0) {
      waits = true;
      while (!stop.stop_requested()) std::this_thread::yield();
      throw std::runtime_error("stopped");
    }
    while (!waits) std::this_thread::yield();
    throw std::runtime_error("cause");
  };
  try {
    in_parallel(2, 2, std::stop_token(), work);
    FAIL() << "expected an exception";
  } catch (const std::runtime_error& error) {
    EXPECT_STREQ(error.what(), "cause");
  }
}

TEST(InParallel, AStopReachesTheCallsAndWhatTheyThrowThenIsNotLost) {
  std::stop_source stop;
  const auto work = [&](size_t, const std::stop_token& token) {
    stop.request_stop();
    if (token.stop_requested()) throw std::runtime_error("stopped");
  };
  EXPECT_THROW(in_parallel(3, 2, stop.get_token(), work), std::runtime_error);
}

}  // namespace
}  // namespace tycho
