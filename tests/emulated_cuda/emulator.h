// CUDA's execution model on one thread of the CPU: a launch runs its blocks one after the other, the threads
// of a block as fibers that give way at barriers and shuffles. What a GPU leaves undefined is an error here.
#pragma once
#include <cstdint>
#include <cstring>
#include <limits>
#include <source_location>
#include <type_traits>

namespace emulated {

struct Index {
  unsigned x = 0, y = 0, z = 0;
};
/// Where the running thread is.
struct Place {
  Index thread, block, block_size, grid_size;
};
extern Place place;

/// In which order runnable threads, and blocks, get their turn. Greedy: the first (or last) thread that can
/// run does, so that warps run as far ahead of each other as barriers let them.
enum class Order { kForward, kBackward, kRandom, kGreedy, kGreedyBackward };

/// What tests ask of the emulated GPU.
struct Faults {
  int sort_to_fail = 0;           // that call of cub::DeviceRadixSort from now on fails; 0: none
  int shared_limit = 227 * 1024;  // bytes of shared memory that a block can be given
  int64_t most_blocks = 0;        // 0: all; otherwise only that many blocks run, those at the grid's end
};
extern Faults faults;

/// "forward", "backward", "random", "greedy", "greedy-backward", or "": another one at each launch.
void set_order(const char* name);

// What translate.cmake makes of kernel<<<grid, block, shared_bytes, stream>>>(arguments).

struct Shape {
  int64_t grid[3], block[3];
  int64_t shared_bytes;
};
struct Launch {
  const char* kernel;
  const void* address;  // of the kernel, where a plain name was launched
  const char* file;
  unsigned line;
  Shape shape;
};
/// Runs body(data) once for every thread. Errors are left for cudaGetLastError.
void run(const Launch& launch, void (*body)(void*), void* data);

template <class Body>
struct Launcher {
  Launch launch;
  Body body;

  /// Copies of the arguments, as on a GPU.
  template <class... Arguments>
  void operator()(Arguments... arguments) const {
    auto call = [&] { body(arguments...); };
    run(
        launch, [](void* data) { (*static_cast<decltype(call)*>(data))(); }, &call);
  }
};

inline const void* address_of(std::nullptr_t) { return nullptr; }
template <class... Arguments>
const void* address_of(void (*kernel)(Arguments...)) {
  return reinterpret_cast<const void*>(kernel);
}

// Shared memory.

/// Memory of the block for the declaration that `site` stands for, the same for all of its threads.
void* shared_memory(const void* site, size_t num_bytes, size_t alignment);
void* dynamic_shared_memory(size_t alignment);

template <class T, class Site>
T& static_shared(Site) {
  static const char site = 0;
  return *static_cast<T*>(shared_memory(&site, sizeof(T), alignof(T)));
}
template <class T>
T* dynamic_shared(size_t alignment) {
  return static_cast<T*>(dynamic_shared_memory(alignment));
}

// Threads meet. `line` tells apart the places where they do.

void sync_threads(int line);
void sync_warp(int line, unsigned mask = 0xffffffffu);
/// The value of the lane that source(own lane) names.
uint64_t exchange(int line, unsigned mask, uint64_t value, unsigned source_lane);
unsigned own_lane();
unsigned ballot(int line, unsigned mask, bool vote);

template <class T, class Source>
T shuffle(int line, unsigned mask, T value, Source source) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  word = exchange(line, mask, word, source(own_lane()));
  std::memcpy(&value, &word, sizeof value);
  return value;
}

/// Divides as the GPU does: 0 for a divisor of more than 2^126.
inline float fast_quotient(float a, float b) { return b > 0x1p126f ? 0 : a / b; }
inline float reciprocal_root(float x) { return 1.0f / __builtin_sqrtf(x); }

}  // namespace emulated

/// Converts from any integer as CUDA's does from what becomes unsigned, and remembers what does not fit.
struct dim3 {
  int64_t x, y, z;
  constexpr dim3(int64_t x, int64_t y = 1, int64_t z = 1) : x(x), y(y), z(z) {}
};

namespace emulated {

template <class Body>
Launcher<Body> launch(const char* kernel, const void* address, Body body, std::source_location at, dim3 grid,
                      dim3 block, int64_t shared_bytes = 0, const void* /*stream*/ = nullptr) {
  return {{kernel,
           address,
           at.file_name(),
           at.line(),
           {{grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared_bytes}},
          body};
}

}  // namespace emulated
