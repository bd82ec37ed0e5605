// Rounding to fp8 on the CPU.
#include "trainer/kernels/cpu/fp8_codes.h"
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/partials.h"

namespace tycho::TYCHO_ISA {
namespace {

/// Returns the magnitudes of elements of bf16.
template <class Lanes>
TYCHO_SIMD Ints magnitudes_at(const void* x, int64_t i, Lanes lanes) {
  return magnitudes(load(static_cast<const Bf16*>(x) + i, lanes));
}

/// Returns the largest magnitude of `dim` consecutive elements.
TYCHO_SIMD float amax_of(int64_t dim, const void* x, int64_t first) {
  Ints most{};
  for_lanes(dim, [&](int64_t i, auto lanes) { most = larger_of(most, magnitudes_at(x, first + i, lanes)); });
  return largest_of(most);
}

/// Stores the codes of `dim` consecutive elements.
TYCHO_SIMD void cast_row(Fp8Format format, int64_t dim, const void* x, int64_t first, float scale,
                         uint8_t* codes) {
  for_lanes(dim, [&](int64_t i, auto lanes) {
    const Codes row =
        codes_of(format, load(static_cast<const Bf16*>(x) + first + i, lanes), broadcast(scale));
    __builtin_memcpy(codes + i, &row, lanes.count);
  });
}

/// codes [columns, rows] of a run of columns.
TYCHO_SIMD void cast_columns(RowsShape shape, int64_t row_step, Fp8Rule rule, const void* x,
                             const float* amax, int64_t column, uint8_t* codes, float* factors) {
  for_lanes(smaller(kLanes, shape.dim - column), [&](int64_t, auto lanes) {
    Vec scale{};
    for (int k = 0; k < lanes.count; ++k) {
      scale[k] = fp8_scale(rule, amax[column + k]);
      factors[column + k] = 1.0f / scale[k];
    }
    for (int64_t row = 0; row < shape.rows; ++row) {
      const Codes across =
          codes_of(rule.format, load(static_cast<const Bf16*>(x) + row * row_step + column, lanes), scale);
      for (int k = 0; k < lanes.count; ++k) codes[(column + k) * shape.rows + row] = across[k];
    }
  });
}

}  // namespace

void fp8_row_amax(RowsShape shape, int64_t row_step, const void* x, float* amax, Stream) {
  for_row_blocks(shape.rows, shape.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) amax[row] = amax_of(shape.dim, x, row * row_step);
  });
}

void fp8_rows(RowsShape shape, int64_t row_step, Fp8Rule rule, const void* x, const float* amax,
              uint8_t* codes, float* factors, Stream) {
  for_row_blocks(shape.rows, shape.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const float scale = fp8_scale(rule, amax ? amax[row] : amax_of(shape.dim, x, row * row_step));
      factors[row] = 1.0f / scale;
      cast_row(rule.format, shape.dim, x, row * row_step, scale, codes + row * shape.dim);
    }
  });
}

int64_t fp8_amax_workspace(RowsShape shape) { return num_partials(shape.rows) * shape.dim; }

void fp8_amax(RowsShape shape, int64_t row_step, bool whole, const void* x, float* amax, float* workspace,
              Stream) {
  for_partials(shape.rows, shape.dim, [&](int64_t partial, int64_t first, int64_t end) {
    float* most = workspace + partial * shape.dim;
    __builtin_memset(most, 0, shape.dim * sizeof(float));
    for (int64_t row = first; row < end; ++row)
      for_lanes(shape.dim, [&](int64_t i, auto lanes) {
        const Ints so_far = (Ints)load(most + i, lanes);
        store(most + i, (Vec)larger_of(so_far, magnitudes_at(x, row * row_step + i, lanes)), lanes);
      });
  });
  const int64_t count = num_partials(shape.rows);
  Ints all{};
  for_lanes(shape.dim, [&](int64_t i, auto lanes) {
    Ints most{};
    for (int64_t p = 0; p < count; ++p)
      most = larger_of(most, (Ints)load(workspace + p * shape.dim + i, lanes));
    store(amax + i, (Vec)most, lanes);
    all = larger_of(all, most);
  });
  if (!whole) return;
  for (int lane = 1; lane < kLanes; ++lane) all[0] = all[lane] > all[0] ? all[lane] : all[0];
  const Vec same = (Vec)(Ints{} + all[0]);
  for_lanes(shape.dim, [&](int64_t i, auto lanes) { store(amax + i, same, lanes); });
}

void fp8_cast(RowsShape shape, int64_t row_step, Fp8Rule rule, bool transposed, const void* x,
              const float* amax, uint8_t* codes, float* factors, Stream) {
  if (transposed)
    return for_blocks(ceil_div(shape.dim, kLanes), shape.rows * shape.dim, [&](int64_t block) {
      cast_columns(shape, row_step, rule, x, amax, block * kLanes, codes, factors);
    });
  const float scale = fp8_scale(rule, shape.dim > 0 ? amax[0] : 0);
  for_row_blocks(shape.rows, shape.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      factors[row] = 1.0f / scale;
      cast_row(rule.format, shape.dim, x, row * row_step, scale, codes + row * shape.dim);
    }
  });
}

void fp8_turn(RowsShape shape, const uint8_t* codes, const float* factor, uint8_t* turned, float* factors,
              Stream) {
  constexpr int64_t kColumns = 64;  // whose results are in the cache at once
  for_blocks(ceil_div(shape.dim, kColumns), shape.rows * shape.dim, [&](int64_t block) {
    const int64_t first = block * kColumns, count = smaller(kColumns, shape.dim - first);
    for (int64_t row = 0; row < shape.rows; ++row)
      for (int64_t k = 0; k < count; ++k)
        turned[(first + k) * shape.rows + row] = codes[row * shape.dim + first + k];
    for (int64_t k = 0; k < count; ++k) factors[first + k] = *factor;
  });
}

}  // namespace tycho::TYCHO_ISA
