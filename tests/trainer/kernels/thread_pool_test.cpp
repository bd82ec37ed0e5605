// Every block once, whoever takes it and however many loops there are.
#include "trainer/kernels/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>

namespace tycho {
namespace {

void run(ThreadPool& pool, int64_t num_blocks, int num_threads, const std::function<void(int64_t)>& body) {
  pool.run(
      num_blocks, num_threads,
      [](const void* context, int64_t block) {
        (*static_cast<const std::function<void(int64_t)>*>(context))(block);
      },
      &body);
}

TEST(ThreadPool, TakesEveryBlockOnce) {
  ThreadPool pool;
  for (const int threads : {1, 2, 4, 3}) {
    for (const int64_t blocks : {0, 1, 2, 3, 100, 4096}) {
      std::vector<std::atomic<int>> taken(static_cast<size_t>(blocks));
      run(pool, blocks, threads, [&](int64_t block) { ++taken[static_cast<size_t>(block)]; });
      for (const auto& count : taken) ASSERT_EQ(count, 1) << threads << " threads, " << blocks << " blocks";
    }
  }
}

TEST(ThreadPool, ALoopIsOverWhenItReturns) {
  ThreadPool pool;
  std::vector<int64_t> sums(64);
  for (int64_t round = 1; round <= 5000; ++round) {
    run(pool, 64, 4, [&](int64_t block) { sums[static_cast<size_t>(block)] += round; });
    ASSERT_EQ(std::accumulate(sums.begin(), sums.end(), int64_t{0}), 64 * round * (round + 1) / 2);
  }
}

TEST(ThreadPool, OthersRunTheirLoopsThemselves) {
  ThreadPool pool;
  std::vector<std::thread> callers;
  std::atomic<int64_t> total = 0;
  for (int i = 0; i < 3; ++i)
    callers.emplace_back([&] {
      for (int round = 0; round < 500; ++round) run(pool, 16, 3, [&](int64_t) { ++total; });
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total, 3 * 500 * 16);
}

TEST(ThreadPool, ALoopInsideOfABlockWorks) {
  ThreadPool pool;
  std::atomic<int64_t> total = 0;
  run(pool, 8, 2, [&](int64_t) { run(pool, 8, 2, [&](int64_t) { ++total; }); });
  EXPECT_EQ(total, 64);
}

}  // namespace
}  // namespace tycho
