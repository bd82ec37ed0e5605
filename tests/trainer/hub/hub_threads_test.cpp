// Numbers that several threads take, and the first exception of them.
#include "trainer/hub/hub_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <vector>

namespace tycho {
namespace {

TEST(HubThreads, ActOnEveryNumberOnce) {
  for (const size_t count : {0, 1, 3, 100}) {
    std::vector<std::atomic<int>> times(count);
    in_parallel(count, 4, [&](size_t i) { ++times[i]; });
    for (const auto& one : times) EXPECT_EQ(one, 1);
  }
}

TEST(HubThreads, ThrowTheFirstExceptionAndBeginNoOther) {
  std::atomic<int> num_begun = 0;
  const auto act = [&](size_t) {
    ++num_begun;
    throw std::runtime_error("no");
  };
  EXPECT_THROW(in_parallel(1000, 4, act), std::runtime_error);
  EXPECT_LE(num_begun, 4);
}

}  // namespace
}  // namespace tycho
