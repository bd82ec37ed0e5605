// The accesses that declarations of kernels are made of.
#pragma once
#include <cstdint>

#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/kernels/twins/kernel_work.h"

namespace tycho {

/// Returns the bytes of an element.
inline int64_t width(Dtype dtype) { return dtype == Dtype::kFp32 ? 4 : 2; }
inline Access in_rows(const void* x, int64_t rows, int64_t row_bytes, int64_t step_bytes) {
  return {x, rows, row_bytes, step_bytes};
}
inline Access in(const void* x, int64_t bytes) { return {x, 1, bytes, bytes}; }
inline Access out(const void* x, int64_t bytes) { return {x, 1, bytes, bytes, /*written=*/true}; }
/// Memory for a kernel's own partial results, which is not counted among its bytes.
inline Access scratch(const void* x, int64_t bytes) { return {x, 1, bytes, bytes, /*written=*/true, 0}; }
inline Access some_of(Access access) { return access.chosen = Access::Chosen::kSome, access; }
inline Access written(Access access) { return access.written = true, access; }

}  // namespace tycho
