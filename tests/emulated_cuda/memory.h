// Which memory a kernel may touch, and who touched it last: reads and writes beside an allocation, memory
// that nobody has, and two threads at the same place without a barrier between them are errors.
#pragma once
#include <cstddef>
#include <cstdint>

namespace emulated {

/// Memory that kernels may use from now on, named in errors. Any thread.
void remember(const void* data, size_t num_bytes);
void forget(const void* data);

/// Who runs. A turn is a stretch of a block between two barriers, counted over all blocks and launches; a
/// warp's turns are counted by __syncwarp within its block.
struct Runner {
  uint32_t first_turn_of_launch = 0, first_turn_of_block = 0, turn = 0;
  uint32_t thread = 0, warp_turn = 0;
  bool active = false;  // a thread of a kernel, not the host
};
extern Runner runner;

/// A read or write by the running thread; nothing where the host runs.
void touch(const void* at, size_t size, bool write);

/// Returns the number of bytes of the tensor from `data` on.
size_t bytes_from(const void* data);
/// Returns the first byte of that memory of a tensor which no thread has read (or written) since that turn; 0
/// if there is none.
uintptr_t first_untouched(uintptr_t begin, size_t num_bytes, bool written, uint32_t since_turn);

/// Notes what a library's kernel reads or writes, of whose threads the emulator knows nothing.
void note_touched(const void* data, size_t num_bytes, bool write);

/// Empties the list of shared memory; a block starts.
void forget_shared();
/// Memory of the block that starts as 0xff: NaN as floats, -1 as integers.
void* make_shared(size_t num_bytes, size_t alignment);

/// Ends the running thread's launch: text is what went wrong.
[[noreturn]] void fault(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace emulated
