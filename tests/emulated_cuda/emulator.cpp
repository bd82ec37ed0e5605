// Runs launches: which thread has its turn, who waits for whom, and what goes wrong.
#include "tests/emulated_cuda/emulator.h"

#include <cuda_runtime_api.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "tests/emulated_cuda/block.h"
#include "tests/emulated_cuda/fiber.h"
#include "tests/emulated_cuda/memory.h"

namespace emulated {

Place place;
Faults faults;
Block block;

namespace {

constexpr int kSharedWithoutAsking = 48 * 1024;

uint64_t num_launches = 0;
std::string error, told_error;
std::map<const void*, int> most_dynamic_shared;  // by kernel: what cudaFuncSetAttribute allowed

Index index_in(uint64_t i, const int64_t (&size)[3]) {
  const auto x = static_cast<uint64_t>(size[0]), y = static_cast<uint64_t>(size[1]);
  return {static_cast<unsigned>(i % x), static_cast<unsigned>(i / x % y), static_cast<unsigned>(i / x / y)};
}

void thread_main() {
  block.body(block.data);
  Thread& thread = block.threads[runner.thread];
  thread.state = State::kReturned;
  set_runnable(runner.thread, false);
  for (;;) tycho_switch_stack(&thread.stack, block.scheduler);
}

void give_turn(unsigned index) {
  Thread& thread = block.threads[index];
  if (thread.stack == nullptr) {
    thread.stack_index = block.free_stacks.back();
    block.free_stacks.pop_back();
    thread.stack = new_stack(stack_memory(static_cast<size_t>(thread.stack_index)), thread_main);
  }
  place.thread = index_in(index, block.launch->shape.block);
  runner.thread = index;
  runner.warp_turn = block.warp_turns[index / kLanes];
  runner.active = true;
  tycho_switch_stack(&block.scheduler, thread.stack);
  runner.active = false;
  if (thread.state == State::kReturned) block.free_stacks.push_back(thread.stack_index);
}

/// Keeps the first error of a launch, with the kernel and the place where it is.
void note(const std::string& what) {
  block.failed = true;
  if (!error.empty()) return;
  const std::string file = block.launch->file;
  const auto list = [](const Index& i) {
    return " (" + std::to_string(i.x) + ", " + std::to_string(i.y) + ", " + std::to_string(i.z) + ")";
  };
  error = std::string(block.launch->kernel) + " of " + file.substr(file.rfind('/') + 1) + ":" +
          std::to_string(block.launch->line) + ", block" + list(place.block) + ", thread" +
          list(place.thread) + " " + what;
}

std::string lanes_of(unsigned mask) {
  char text[16];
  std::snprintf(text, sizeof text, "%08x", mask);
  return text;
}

/// What keeps thread i from going on where no thread can run, seen beside thread `waiting` at a barrier.
std::string hang_of(unsigned i, int waiting, int returned) {
  const Thread& thread = block.threads[i];
  const std::string line = std::to_string(thread.line);
  const Meeting& meeting = block.meetings[i / kLanes];
  if (thread.state == State::kInWarp)
    return "waits at line " + line + " for lanes " + lanes_of(meeting.mask) + " of its warp, of which " +
           lanes_of(meeting.mask & ~meeting.arrived) + " never come";
  if (thread.state != State::kAtBarrier) return "";
  if (returned >= 0)
    return "waits at the barrier of line " + line + ", but thread " + std::to_string(returned) +
           " of the block has returned";
  const int other = block.threads[static_cast<size_t>(waiting)].line;
  if (other != thread.line)
    return "waits at the barrier of line " + line + ", thread " + std::to_string(waiting) +
           " of the block at that of line " + std::to_string(other);
  return "";
}

/// Nobody can run: all have returned, all wait at one barrier and go on, or the block hangs.
bool everyone_returned_or_goes_on() {
  int waiting = -1, returned = -1;
  for (unsigned i = 0; i < block.num_threads; ++i) {
    if (block.threads[i].state == State::kReturned) returned = static_cast<int>(i);
    if (block.threads[i].state == State::kAtBarrier && waiting < 0) waiting = static_cast<int>(i);
  }
  for (unsigned i = 0; i < block.num_threads; ++i)
    if (const std::string hang = hang_of(i, waiting, returned); !hang.empty()) {
      place.thread = index_in(i, block.launch->shape.block);
      note(hang);
      return true;
    }
  if (waiting < 0) return true;
  for (unsigned i = 0; i < block.num_threads; ++i) {
    block.threads[i].state = State::kRunnable;
    set_runnable(i, true);
  }
  ++runner.turn;
  return false;
}

void run_block(uint64_t index) {
  place.block = index_in(index, block.launch->shape.grid);
  runner.first_turn_of_block = ++runner.turn;
  block.runnable = {}, block.warp_turns = {};
  for (unsigned i = 0; i < block.num_threads; ++i) block.threads[i] = {}, set_runnable(i, true);
  for (Meeting& meeting : block.meetings) meeting.mask = meeting.arrived = 0;
  block.shared.clear();
  block.static_bytes = 0, block.dynamic = nullptr;
  forget_shared();
  int last = -1;
  while (!block.failed) {
    const int next = next_thread(last);
    if (next >= 0)
      give_turn(static_cast<unsigned>(next)), last = next;
    else if (everyone_returned_or_goes_on())
      return;
  }
}

/// Dynamic shared memory that a launch of that kernel may ask for.
int64_t dynamic_shared_allowed(const void* kernel) {
  const auto allowed = most_dynamic_shared.find(kernel);
  return allowed == most_dynamic_shared.end() ? kSharedWithoutAsking : allowed->second;
}

/// Why a GPU would refuse the launch, or "".
std::string refusal(const Launch& launch) {
  const Shape& shape = launch.shape;
  constexpr int64_t kMostGrid[3] = {0x7fffffff, 65535, 65535}, kMostBlock[3] = {1024, 1024, 64};
  for (int i = 0; i < 3; ++i) {
    if (shape.grid[i] < 1 || shape.grid[i] > kMostGrid[i])
      return "a grid of " + std::to_string(shape.grid[i]) + " blocks in dimension " + std::to_string(i);
    if (shape.block[i] < 1 || shape.block[i] > kMostBlock[i])
      return "a block of " + std::to_string(shape.block[i]) + " threads in dimension " + std::to_string(i);
  }
  const int64_t threads = shape.block[0] * shape.block[1] * shape.block[2];
  if (threads > kMostThreads) return "a block of " + std::to_string(threads) + " threads";
  const int64_t most = dynamic_shared_allowed(launch.address);
  if (shape.shared_bytes < 0 || shape.shared_bytes > most)
    return std::to_string(shape.shared_bytes) + " bytes of dynamic shared memory, where it may have " +
           std::to_string(most);
  return "";
}

/// With what is static, which is known when the first thread gets to a declaration.
void check_shared() {
  const auto dynamic_bytes = static_cast<size_t>(block.launch->shape.shared_bytes);
  const size_t total = block.static_bytes + dynamic_bytes;
  const bool asked = most_dynamic_shared.contains(block.launch->address);
  const auto limit = static_cast<size_t>(asked ? faults.shared_limit : kSharedWithoutAsking);
  if (total > limit)
    fault("has %zu bytes of shared memory, %zu of them static, where it may have %zu", total,
          block.static_bytes, limit);
}

}  // namespace

void fault(const char* format, ...) {
  char what[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  if (!runner.active) {
    std::fprintf(stderr, "[emulated CUDA] outside any kernel: %s\n", what);
    std::abort();
  }
  note(what);
  runner.active = false;
  void* abandoned = nullptr;
  tycho_switch_stack(&abandoned, block.scheduler);
  std::abort();
}

void run(const Launch& launch, void (*body)(void*), void* data) {
  if (!error.empty()) return;  // as on a GPU, nothing runs after an error
  if (const std::string refused = refusal(launch); !refused.empty()) {
    error = std::string(launch.kernel) + " is launched with " + refused;
    return;
  }
  set_order_of(num_launches++);
  const Shape& shape = launch.shape;
  block.launch = &launch, block.body = body, block.data = data;
  block.num_threads = static_cast<unsigned>(shape.block[0] * shape.block[1] * shape.block[2]);
  block.failed = false;
  block.free_stacks.clear();
  for (int i = 0; i < static_cast<int>(kMostThreads); ++i) block.free_stacks.push_back(i);
  const auto index = [](const int64_t(&size)[3]) {
    return Index{static_cast<unsigned>(size[0]), static_cast<unsigned>(size[1]),
                 static_cast<unsigned>(size[2])};
  };
  place.block_size = index(shape.block), place.grid_size = index(shape.grid);
  runner.first_turn_of_launch = runner.turn + 1;
  const auto num_blocks = static_cast<uint64_t>(shape.grid[0] * shape.grid[1] * shape.grid[2]);
  const auto most = static_cast<uint64_t>(faults.most_blocks);
  const uint64_t first = most > 0 && most < num_blocks ? num_blocks - most : 0;
  for (uint64_t i = first; i < num_blocks && !block.failed; ++i)
    run_block(first + block_in_order(i - first, num_blocks - first));
  block.launch = nullptr;
}

void* shared_memory(const void* site, size_t num_bytes, size_t alignment) {
  for (const StaticShared& known : block.shared)
    if (known.site == site) return known.data;
  block.static_bytes += num_bytes;
  check_shared();
  block.shared.push_back({site, make_shared(num_bytes, alignment)});
  return block.shared.back().data;
}

void* dynamic_shared_memory(size_t alignment) {
  if (block.dynamic == nullptr) {
    const auto num_bytes = static_cast<size_t>(block.launch->shape.shared_bytes);
    check_shared();
    block.dynamic = make_shared(num_bytes, alignment);
  }
  return block.dynamic;
}

}  // namespace emulated

cudaError_t cudaGetLastError() {
  emulated::told_error.clear();
  emulated::told_error.swap(emulated::error);
  return emulated::told_error.empty() ? cudaSuccess : cudaErrorLaunchFailure;
}

const char* cudaGetErrorString(cudaError_t status) {
  if (status == cudaSuccess) return "no error";
  return status == cudaErrorInvalidValue ? "invalid argument" : emulated::told_error.c_str();
}

cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      value > emulated::faults.shared_limit)
    return cudaErrorInvalidValue;
  emulated::most_dynamic_shared[kernel] = value;
  return cudaSuccess;
}
