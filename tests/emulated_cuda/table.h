// What tests reach in libtycho_emulated_cuda.so, which they open with dlopen: the kernels of trainer/kernels/
// cuda compiled for the CPU, and the GPU they run on.
#pragma once
#include <cstddef>
#include <cstdint>

#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

struct EmulatedCuda {
  const KernelTable* table = nullptr;  // for CPU memory; streams are ignored
  /// Memory that kernels may touch, until it is forgotten. Any thread, but not beside a kernel.
  void (*remember)(const void* data, size_t num_bytes) = nullptr;
  void (*forget)(const void* data) = nullptr;
  /// The order of threads and blocks: "forward", "backward", "random", "greedy", "greedy-backward"; "": the
  /// next of them at every launch.
  void (*set_order)(const char* name) = nullptr;
  /// That call of CUB's sort, counted from now, reports an error; 0: none does.
  void (*fail_sort)(int call) = nullptr;
  /// Bytes of shared memory that a block of this GPU can be given: 227 KiB unless told.
  void (*limit_shared)(int num_bytes) = nullptr;
  /// Of every grid only its last blocks run; 0: all do.
  void (*run_last_blocks)(int64_t num_blocks) = nullptr;
};

}  // namespace tycho

extern "C" const tycho::EmulatedCuda* tycho_emulated_cuda();
