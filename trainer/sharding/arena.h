// Large memory, allocated once.
#pragma once
#include "trainer/kernels/tensor.h"

namespace tycho {

/// Allocates num_bytes of zeroed memory as a uint8 tensor. On the CPU: page-aligned, on huge pages where the
/// kernel gives them, kept until the last view is gone. On a GPU: from LibTorch's allocator.
Tensor make_arena(int64_t num_bytes, const at::Device& device);

/// Number of bytes requested for all CPU arenas that are alive. Any thread.
int64_t arena_bytes();

/// Returns a view of an arena: `shape` elements of dtype at byte `offset`.
Tensor arena_view(const Tensor& arena, int64_t offset, at::IntArrayRef shape, at::ScalarType dtype);

}  // namespace tycho
