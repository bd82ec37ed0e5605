// Threads that take blocks of one loop. Unlike in OpenMP, a loop ends when its blocks are done, not when
// every thread has passed by: next to a busy process a thread may wait milliseconds for its core, and a step
// consists of thousands of loops.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace tycho {

class ThreadPool {
 public:
  using Body = void (*)(const void* context, int64_t block);

  ThreadPool() = default;
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Runs body(context, block) for blocks 0..num_blocks-1, by the calling thread and at most num_threads - 1
  /// others, and returns when all are done. Blocks are handed out in order. From any thread: while one loop
  /// runs, other loops (also one inside of a block) are run by their callers alone. `body` must not throw.
  void run(int64_t num_blocks, int num_threads, Body body, const void* context);

 private:
  struct Job {
    Body body;
    const void* context;
    int64_t num_blocks;
  };

  void help(int index);
  /// Takes blocks of the loop with this number until none is left; calls between_blocks before each.
  template <class BetweenBlocks>
  void take_blocks(uint32_t loop, BetweenBlocks&& between_blocks);
  void wait_until_done();
  void wait_for_a_loop(uint32_t after);

  std::mutex busy_;  // held by the thread that runs a loop
  Job job_{};        // constant while a block of it is not done
  // Upper half: number of the loop; lower half: number of its blocks that no thread has taken. A block is
  // taken only from the loop that was read.
  alignas(64) std::atomic<uint64_t> open_ = 0;
  alignas(64) std::atomic<int32_t> undone_ = 0;  // 32 bits, as a futex requires
  alignas(64) std::atomic<uint32_t> loop_ = 0;
  std::atomic<int> helpers_wanted_ = 0;
  std::atomic<int> callers_core_ = -1;
  std::atomic<bool> stop_ = false;
  std::vector<std::thread> helpers_;
};

}  // namespace tycho
