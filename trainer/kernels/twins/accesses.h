// One access of a kernel, and how declarations of kernels make them.
#pragma once
#include <cstdint>

#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// `rows` rows of `row_bytes` each, `step_bytes` apart.
struct Access {
  const void* data = nullptr;
  int64_t rows = 0, row_bytes = 0, step_bytes = 0;
  bool written = false;
  // Share of the bytes that are touched: more than 1 where rows are read again, 0 for a
  // workspace, which is read and written.
  double times = 1;
  /// Choice of rows by data: none; some rows are left out; or rows of a table, for which the first one
  /// stands.
  enum class Chosen { kAll, kSome, kOfTable } chosen = Chosen::kAll;
};

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
