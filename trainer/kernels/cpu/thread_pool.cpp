// Threads that take blocks of one loop.
#include "trainer/kernels/cpu/thread_pool.h"

#include <chrono>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tycho {
namespace {

constexpr uint64_t kBlocksMask = 0xffffffff;
// Loops follow each other within microseconds, and waking a thread takes tens of them; but who spins for long
// has used up its share of a core when a neighbour wants it, and keeps a thread that holds a block from
// moving over.                                                               (bench/results/train_step.md)
constexpr auto kHelperSpin = std::chrono::microseconds(50);
constexpr auto kCallerSpin = std::chrono::microseconds(10);

void pause_briefly() {
#if defined(__x86_64__)
  for (int i = 0; i < 16; ++i) _mm_pause();
#endif
}

/// Spins until `ready` or the time is up.
template <class Ready>
bool spin(std::chrono::microseconds time, const Ready& ready) {
  const auto end = std::chrono::steady_clock::now() + time;
  do {
    if (ready()) return true;
    pause_briefly();
  } while (std::chrono::steady_clock::now() < end);
  return ready();
}

}  // namespace

ThreadPool::~ThreadPool() {
  stop_ = true;
  ++loop_;
  loop_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

void ThreadPool::run(int64_t num_blocks, int num_threads, Body body, const void* context) {
  const std::unique_lock alone(busy_, std::try_to_lock);
  if (!alone || num_threads < 2 || num_blocks < 2 || num_blocks > INT32_MAX) {
    for (int64_t block = 0; block < num_blocks; ++block) body(context, block);
    return;
  }
  while (static_cast<int>(helpers_.size()) < num_threads - 1)
    helpers_.emplace_back([this, index = static_cast<int>(helpers_.size())] { help(index); });
  job_ = {body, context, num_blocks};
  undone_.store(static_cast<int32_t>(num_blocks), std::memory_order_relaxed);
  helpers_wanted_.store(num_threads - 1, std::memory_order_relaxed);
  const uint32_t loop = loop_.load(std::memory_order_relaxed) + 1;
  open_.store(uint64_t{loop} << 32 | static_cast<uint64_t>(num_blocks), std::memory_order_release);
  loop_.store(loop);
  loop_.notify_all();
  take_blocks(loop);
  wait_until_done();
}

void ThreadPool::take_blocks(uint32_t loop) {
  uint64_t open = open_.load(std::memory_order_acquire);
  while (open >> 32 == loop && (open & kBlocksMask) != 0) {
    if (!open_.compare_exchange_weak(open, open - 1, std::memory_order_acq_rel)) continue;
    // The block is ours, so the loop is not over and job_ is its.
    job_.body(job_.context, job_.num_blocks - static_cast<int64_t>(open & kBlocksMask));
    if (undone_.fetch_sub(1, std::memory_order_acq_rel) == 1) undone_.notify_one();
    open = open_.load(std::memory_order_acquire);
  }
}

void ThreadPool::wait_until_done() {
  if (spin(kCallerSpin, [&] { return undone_.load(std::memory_order_acquire) == 0; })) return;
  for (int32_t left; (left = undone_.load(std::memory_order_acquire)) != 0;) undone_.wait(left);
}

void ThreadPool::wait_for_a_loop(uint32_t after) {
  if (!spin(kHelperSpin, [&] { return loop_.load(std::memory_order_acquire) != after; })) loop_.wait(after);
}

void ThreadPool::help(int index) {
  for (uint32_t seen = 0; !stop_;) {
    wait_for_a_loop(seen);
    seen = loop_.load(std::memory_order_acquire);
    if (index < helpers_wanted_.load(std::memory_order_relaxed)) take_blocks(seen);
  }
}

}  // namespace tycho
