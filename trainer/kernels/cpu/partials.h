// Sums over the rows of a matrix that are equal for any number of threads: a partial sum for each run of
// rows, then their sum in order.
#pragma once
#include "trainer/kernels/cpu/parallel.h"
#include "trainer/kernels/cpu/simd.h"

namespace tycho::TYCHO_ISA {

inline constexpr int64_t kPartials = 32;

TYCHO_SIMD int64_t rows_per_partial(int64_t rows) { return larger(16, ceil_div(rows, kPartials)); }
TYCHO_SIMD int64_t num_partials(int64_t rows) { return ceil_div(rows, rows_per_partial(rows)); }

/// Runs body(partial, first, end) over the runs of rows; a row has `elements` elements.
template <class Body>
TYCHO_SIMD void for_partials(int64_t rows, int64_t elements, const Body& body) {
  const int64_t run = rows_per_partial(rows);
  for_blocks(num_partials(rows), rows * elements,
             [&](int64_t partial) { body(partial, partial * run, smaller(rows, (partial + 1) * run)); });
}

/// sums [dim] = the sum of partials [count, dim], or += it.
TYCHO_SIMD void add_partials(int64_t dim, const float* partials, int64_t count, float* sums, bool add) {
  constexpr int64_t kColumns = 256;
  for_blocks(ceil_div(dim, kColumns), dim * count, [&](int64_t block) {
    const int64_t first = block * kColumns;
    for_lanes(smaller(kColumns, dim - first), [&](int64_t i, auto lanes) {
      Vec sum = add ? load(sums + first + i, lanes) : Vec{};
      for (int64_t p = 0; p < count; ++p) sum += load(partials + p * dim + first + i, lanes);
      store(sums + first + i, sum, lanes);
    });
  });
}

}  // namespace tycho::TYCHO_ISA
