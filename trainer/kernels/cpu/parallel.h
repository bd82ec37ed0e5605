// Divides work into blocks that threads take one by one.
#pragma once
#include "trainer/kernels/cpu/simd.h"

namespace tycho {

/// Runs body(context, block) for blocks 0..num_blocks-1, on as many threads as OpenMP would use when
/// `parallel` (thread_pool.h).
void run_blocks(int64_t num_blocks, bool parallel, void (*body)(const void* context, int64_t block),
                const void* context);

/// Returns the number of threads that a parallel loop has at most.
int64_t loop_threads();

/// Return at least num_bytes of the calling thread's own memory, aligned to 64 bytes; valid until the next
/// call. caller_memory is a second one, for data that all blocks of a loop share.
void* thread_memory(int64_t num_bytes);
void* caller_memory(int64_t num_bytes);

}  // namespace tycho

namespace tycho::TYCHO_ISA {

/// Number of elements below which waking other threads costs more than it saves.
inline constexpr int64_t kParallelElements = 1 << 15;
/// Number of elements of a block: small enough that a busy neighbour on one core delays the end by little.
inline constexpr int64_t kBlockElements = 1 << 13;

/// Runs body(block) for blocks 0..num_blocks-1 on any thread, in any order; results must not depend on
/// either.
template <class Body>
TYCHO_SIMD void for_blocks(int64_t num_blocks, int64_t elements, const Body& body) {
  run_blocks(
      num_blocks, elements >= kParallelElements && num_blocks > 1,
      [](const void* context, int64_t block) { (*static_cast<const Body*>(context))(block); }, &body);
}

/// Runs body(first, count) over runs of rows, one for each block.
template <class Body>
TYCHO_SIMD void for_row_blocks(int64_t rows, int64_t dim, const Body& body) {
  const int64_t block_rows = larger(1, kBlockElements / larger(1, dim));
  for_blocks(ceil_div(rows, block_rows), rows * dim, [&](int64_t block) {
    const int64_t first = block * block_rows;
    body(first, smaller(block_rows, rows - first));
  });
}

}  // namespace tycho::TYCHO_ISA
