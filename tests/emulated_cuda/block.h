// The block that runs: its threads, who waits for whom, and whose turn is next.
#pragma once
#include <array>
#include <vector>

#include "tests/emulated_cuda/emulator.h"

namespace emulated {

inline constexpr unsigned kMostThreads = 1024, kLanes = 32;

enum class State { kRunnable, kAtBarrier, kInWarp, kReturned };

struct Thread {
  State state = State::kRunnable;
  void* stack = nullptr;  // where it goes on; null before it started
  int stack_index = -1;
  int line = 0;  // of the barrier or exchange it waits at
  uint64_t received = 0;
};

/// Lanes of a warp that wait for each other.
struct Meeting {
  unsigned mask = 0, arrived = 0;
  int line = 0;
  std::array<uint64_t, kLanes> values{};
  std::array<unsigned, kLanes> sources{};
};

struct StaticShared {
  const void* site;
  void* data;
};

struct Block {
  const Launch* launch = nullptr;
  void (*body)(void*) = nullptr;
  void* data = nullptr;
  unsigned num_threads = 0;
  std::array<Thread, kMostThreads> threads;
  std::array<uint64_t, kMostThreads / 64> runnable;
  std::array<Meeting, kMostThreads / kLanes> meetings;
  std::array<uint32_t, kMostThreads / kLanes> warp_turns;
  std::vector<StaticShared> shared;
  size_t static_bytes = 0;
  void* dynamic = nullptr;
  void* scheduler = nullptr;  // the host's stack
  std::vector<int> free_stacks;
  bool failed = false;
};

extern Block block;

inline void set_runnable(unsigned thread, bool can_run) {
  const uint64_t bit = uint64_t{1} << thread % 64;
  if (can_run)
    block.runnable[thread / 64] |= bit;
  else
    block.runnable[thread / 64] &= ~bit;
}

/// Whose turn it is after thread `last`; -1 when nobody can run.
int next_thread(int last);
/// The i-th of n blocks that runs.
uint64_t block_in_order(uint64_t i, uint64_t n);
/// Takes the next order where no name was set.
void set_order_of(uint64_t launch);

}  // namespace emulated
