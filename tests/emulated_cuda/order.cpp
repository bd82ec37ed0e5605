// In which order threads and blocks run: a missing barrier hides from one order, seldom from five.
#include <bit>
#include <iterator>
#include <string>

#include "tests/emulated_cuda/block.h"

namespace emulated {
namespace {

Order order = Order::kForward;
bool rotate_orders = true;

uint64_t random_word() {
  static uint64_t state = 0x9E3779B97F4A7C15;
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return state;
}

/// The first runnable thread from `from` on, or -1.
int runnable_from(unsigned from) {
  for (unsigned word = from / 64; word < block.runnable.size(); ++word) {
    uint64_t bits = block.runnable[word];
    if (word == from / 64) bits &= ~uint64_t{0} << from % 64;
    if (bits != 0) return static_cast<int>(word * 64) + std::countr_zero(bits);
  }
  return -1;
}

/// The last runnable thread up to `from`, or -1.
int runnable_until(unsigned from) {
  for (int word = static_cast<int>(from / 64); word >= 0; --word) {
    uint64_t bits = block.runnable[static_cast<size_t>(word)];
    if (word == static_cast<int>(from / 64)) bits &= ~uint64_t{0} >> (63 - from % 64);
    if (bits != 0) return word * 64 + 63 - std::countl_zero(bits);
  }
  return -1;
}

}  // namespace

int next_thread(int last) {
  const unsigned n = block.num_threads;
  const auto around = [](int found, int otherwise) { return found >= 0 ? found : otherwise; };
  switch (order) {
    case Order::kForward: return around(runnable_from(static_cast<unsigned>(last + 1) % n), runnable_from(0));
    case Order::kBackward:
      return around(runnable_until(last > 0 ? static_cast<unsigned>(last - 1) : n - 1),
                    runnable_until(n - 1));
    case Order::kRandom:
      return around(runnable_from(static_cast<unsigned>(random_word() % n)), runnable_from(0));
    case Order::kGreedy: return runnable_from(0);
    case Order::kGreedyBackward: return runnable_until(n - 1);
  }
  return -1;
}

uint64_t block_in_order(uint64_t i, uint64_t n) {
  if (order == Order::kBackward || order == Order::kGreedyBackward) return n - 1 - i;
  if (order != Order::kRandom) return i;
  for (const uint64_t step : {uint64_t{7919}, uint64_t{104729}, uint64_t{15485863}})
    if (n % step != 0) return i * step % n;  // a prime that does not divide n reaches every block
  return i;
}

void set_order_of(uint64_t launch) {
  constexpr Order kOrders[] = {Order::kForward, Order::kGreedyBackward, Order::kRandom, Order::kGreedy,
                               Order::kBackward};
  if (rotate_orders) order = kOrders[launch % std::size(kOrders)];
}

void set_order(const char* name) {
  constexpr const char* kNames[] = {"forward", "backward", "random", "greedy", "greedy-backward"};
  rotate_orders = true;
  for (int i = 0; i < 5; ++i)
    if (std::string(name) == kNames[i]) order = static_cast<Order>(i), rotate_orders = false;
}

}  // namespace emulated
