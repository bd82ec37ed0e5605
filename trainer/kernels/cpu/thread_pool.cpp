// Threads spin between loops only as long as it helps, so that a busy neighbour costs little.
#include "trainer/kernels/cpu/thread_pool.h"

#include <sched.h>

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

// A thread that gives its core away by itself, before the kernel takes it, holds no block while a neighbour
// has the core: a neighbour slows a step down by 1.6 and no longer by 1.9.      (bench/results/train_step.md)
constexpr auto kHelperTurn = std::chrono::microseconds(500);

void pause_briefly() {
#if defined(__x86_64__)
  for (int i = 0; i < 16; ++i) _mm_pause();
#endif
}

/// Spins until `ready` or the time is up. Returns the last result of `ready`.
template <class Ready>
bool spin(std::chrono::microseconds time, const Ready& ready) {
  const auto end = std::chrono::steady_clock::now() + time;
  do {
    if (ready()) return true;
    pause_briefly();
  } while (std::chrono::steady_clock::now() < end);
  return ready();
}

/// Moves a helper off the core of the thread that it helps when both are on one core and would take turns:
/// the kernel leaves them there when a neighbour has the other core. Makes no system call while they are
/// apart.
class Elsewhere {
 public:
  Elsewhere() { usable_ = sched_getaffinity(0, sizeof all_, &all_) == 0 && CPU_COUNT(&all_) > 1; }

  void than(int callers_core) const {
    if (!usable_ || callers_core < 0 || sched_getcpu() != callers_core) return;
    cpu_set_t others = all_;
    CPU_CLR(static_cast<size_t>(callers_core), &others);
    sched_setaffinity(0, sizeof others, &others);  // for this thread only; if refused, nothing changes
  }

 private:
  cpu_set_t all_;
  bool usable_;
};

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
  callers_core_.store(sched_getcpu(), std::memory_order_relaxed);
  const uint32_t loop = loop_.load(std::memory_order_relaxed) + 1;
  open_.store(uint64_t{loop} << 32 | static_cast<uint64_t>(num_blocks), std::memory_order_release);
  loop_.store(loop);
  loop_.notify_all();
  take_blocks(loop, [] {});
  wait_until_done();
}

template <class BetweenBlocks>
void ThreadPool::take_blocks(uint32_t loop, BetweenBlocks&& between_blocks) {
  between_blocks();
  uint64_t open = open_.load(std::memory_order_acquire);
  while (open >> 32 == loop && (open & kBlocksMask) != 0) {
    if (!open_.compare_exchange_weak(open, open - 1, std::memory_order_acq_rel)) continue;
    // The block is taken, so the loop is not over and job_ belongs to it.
    job_.body(job_.context, job_.num_blocks - static_cast<int64_t>(open & kBlocksMask));
    if (undone_.fetch_sub(1, std::memory_order_acq_rel) == 1) undone_.notify_one();
    between_blocks();
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
  using Clock = std::chrono::steady_clock;
  const Elsewhere elsewhere;
  Clock::time_point turn = Clock::now();
  const auto end_turn = [&] {
    if (Clock::now() - turn < kHelperTurn) return;
    sched_yield();
    turn = Clock::now();
  };
  for (uint32_t seen = 0; !stop_;) {
    wait_for_a_loop(seen);
    seen = loop_.load(std::memory_order_acquire);
    if (index >= helpers_wanted_.load(std::memory_order_relaxed)) continue;
    elsewhere.than(callers_core_.load(std::memory_order_relaxed));
    take_blocks(seen, end_turn);
  }
}

}  // namespace tycho
