// Matrix products of tiles that fit a core's caches, and copies to the layout of tiles.
#pragma once
#include "trainer/kernels/cpu/matmul/tile_elements.h"
#include "trainer/kernels/cpu/matmul/tile_rows_avx2.h"
#include "trainer/kernels/cpu/matmul/tile_rows_avx512.h"
#include "trainer/kernels/cpu/simd.h"

namespace tycho::TYCHO_ISA {

/// Number of columns that a product computes at once; tiles are as wide as a multiple of it, padded with
/// zeros.
inline constexpr int64_t kTileColumns = 2 * kLanes;
/// Number of rows at once: with two vectors each they fill the registers.
inline constexpr int kTileRows = kLanes == 16 ? 12 : 6;

TYCHO_SIMD int64_t tile_width(int64_t columns) { return ceil_div(columns, kTileColumns) * kTileColumns; }

/// Left operand: element (row, k) of a tile is data[row * row_step + k * k_step], so that a transpose costs
/// nothing. One of the steps is 1. Tiles are `tile_step` apart; 0: kTileRows rows.
template <class E>
struct TileLeftOf {
  const E* data;
  int64_t row_step, k_step, tile_step = 0;

  /// Returns the operand from the first row of a tile on.
  TileLeftOf from_row(int64_t row) const {
    return {data + (tile_step == 0 ? row * row_step : row / kTileRows * tile_step), row_step, k_step,
            tile_step};
  }
};
using TileLeft = TileLeftOf<float>;

/// c [Rows, kTileColumns] = a [Rows, depth] · b [depth, kTileColumns], or += when Add. Twelve rows fetch what
/// is ahead.
template <int Rows, bool Add, class E>
static void product_of_rows(TileLeftOf<E> a, const E* b, int64_t b_width, int64_t depth, float* c,
                            int64_t c_width, [[maybe_unused]] NextPieces ahead) {
  if constexpr (Rows == kTileRows && kLanes == 16) {
    if (a.k_step == 1)
      return product_of_twelve_rows<Add, false>(a.data, a.row_step, b, b_width, depth, c, c_width, ahead);
    return product_of_twelve_rows<Add, true>(a.data, a.k_step, b, b_width, depth, c, c_width, ahead);
  }
#if defined(__AVX2__) && !defined(__AVX512F__)
  if constexpr (Rows == kTileRows) {
    if (a.k_step == 1)
      return product_of_six_rows<Add, false>(a.data, a.row_step, b, b_width, depth, c, c_width);
    return product_of_six_rows<Add, true>(a.data, a.k_step, b, b_width, depth, c, c_width);
  }
#endif
  Vec sum[Rows][2];
#pragma GCC unroll 12
  for (int row = 0; row < Rows; ++row) {
    sum[row][0] = Add ? load(c + row * c_width, Full{}) : Vec{};
    sum[row][1] = Add ? load(c + row * c_width + kLanes, Full{}) : Vec{};
  }
  for (int64_t k = 0; k < depth; ++k) {
    const Vec left = lanes_of(b + k * b_width), right = lanes_of(b + k * b_width + kLanes);
#pragma GCC unroll 12
    for (int row = 0; row < Rows; ++row) {
      const Vec x = spread(a.data[row * a.row_step + k * a.k_step]);
      sum[row][0] = add_product(E{}, sum[row][0], x, left);
      sum[row][1] = add_product(E{}, sum[row][1], x, right);
    }
  }
#pragma GCC unroll 12
  for (int row = 0; row < Rows; ++row) {
    store(c + row * c_width, sum[row][0], Full{});
    store(c + row * c_width + kLanes, sum[row][1], Full{});
  }
}

template <int Rows, bool Add, class E>
static void product_of_rest(int64_t rows, TileLeftOf<E> a, const E* b, int64_t b_width, int64_t depth,
                            float* c, int64_t c_width) {
  if constexpr (Rows > 0) {
    if (rows == Rows) return product_of_rows<Rows, Add>(a, b, b_width, depth, c, c_width, NextPieces());
    product_of_rest<Rows - 1, Add>(rows, a, b, b_width, depth, c, c_width);
  }
}

/// Fetches the first `rows` rows, at most a tile's, of sums that will be written.
TYCHO_SIMD void fetch_tile(const float* c, int64_t c_width, int64_t rows) {
  for (int64_t row = 0; row < smaller(rows, kTileRows); ++row)
    for (int64_t i = 0; i < kTileColumns; i += 16) __builtin_prefetch(c + row * c_width + i, 1);
}

/// Memory that is read soon: `bytes` of each of some rows. Products fetch it while they are computed, from
/// the `first`-th piece on: a piece of each row, then the next piece of each.
struct Ahead {
  const void* data = nullptr;
  int64_t bytes = 0, rows = 1, row_step = kPieceBytes, first = 0;  // row_step in bytes

  /// Returns rows for products of tiles of this depth. A tile fetches a piece of each of depth / kPieceSteps
  /// rows, so the number of rows is rounded up to a multiple of that.
  TYCHO_SIMD_MEMBER static Ahead of_rows(const void* data, int64_t bytes, int64_t rows, int64_t row_step,
                                         int64_t depth) {
    const int64_t at_once = larger(1, depth / kPieceSteps);
    return {data, bytes, ceil_div(rows, at_once) * at_once, row_step};
  }
  /// Returns where pieces begin from the `number`-th on, or `otherwise` where nothing is left.
  TYCHO_SIMD_MEMBER NextPieces pieces(int64_t number, const void* otherwise) const {
    const int64_t at = first + number, column = rows == 1 ? at : at / rows;  // small tiles feel a division
    if (column * kPieceBytes >= bytes) return {static_cast<const char*>(otherwise), kPieceBytes};
    return {static_cast<const char*>(data) + (at - column * rows) * row_step + column * kPieceBytes,
            row_step};
  }
};

/// c [rows, width] = a [rows, depth] · b [depth, width], or += when Add. `width` is a multiple of
/// kTileColumns. With Fetch, c may be far away: a tile's sums are fetched while products are computed, those
/// of the next tile when Add. Tiles of twelve rows fetch what is ahead.
template <bool Add, bool Fetch = false, class E>
static void tile_product(int64_t rows, int64_t width, int64_t depth, TileLeftOf<E> a, const E* b,
                         int64_t b_width, float* c, int64_t c_width, Ahead ahead = {}) {
  int64_t fetched = 0;
  for (int64_t column = 0; column < width; column += kTileColumns) {
    int64_t row = 0;
    for (; row + kTileRows <= rows; row += kTileRows) {
      if constexpr (Fetch)
        fetch_tile(c + (row + (Add ? kTileRows : 0)) * c_width + column, c_width,
                   rows - row - (Add ? kTileRows : 0));
      // Fetching a line that is in the cache already costs nothing.
      product_of_rows<kTileRows, Add>(a.from_row(row), b + column, b_width, depth, c + row * c_width + column,
                                      c_width, ahead.pieces(fetched, b + column));
      fetched += depth / kPieceSteps;
    }
    product_of_rest<kTileRows - 1, Add>(rows - row, a.from_row(row), b + column, b_width, depth,
                                        c + row * c_width + column, c_width);
  }
}

/// Copies lanes First..Width - 1 of a row, in vectors whose sizes the compiler knows.
template <int64_t Width, int64_t First = 0, class T>
TYCHO_SIMD void copy_row(const T* x, float* out) {
  if constexpr (First < Width) {
    constexpr Fixed<static_cast<int>(Width - First < kLanes ? Width - First : kLanes)> lanes;
    store(out + First, load(x + First, lanes), lanes);
    copy_row<Width, First + kLanes>(x, out);
  }
}

/// Writes out [rows, width] = factor x [rows, columns]; the rest of each row is 0.
template <class T>
TYCHO_SIMD void copy_tile(const T* x, int64_t x_step, int64_t rows, int64_t columns, float factor, float* out,
                          int64_t width) {
  for (int64_t row = 0; row < rows; ++row) {
    for_lanes(columns, [&](int64_t i, auto lanes) {
      store(out + row * width + i, load(x + row * x_step + i, lanes) * factor, lanes);
    });
    for (int64_t i = columns; i < width; ++i) out[row * width + i] = 0.0f;
  }
}

/// Transposes a square of vectors: every round interleaves the first half with the second.
TYCHO_SIMD void transpose(Vec (&square)[kLanes]) {
  Ints low, high;
  for (int lane = 0; lane < kLanes; ++lane) {
    low[lane] = lane / 2 + lane % 2 * kLanes;
    high[lane] = low[lane] + kLanes / 2;
  }
#pragma GCC unroll 4
  for (int round = 1; round < kLanes; round *= 2) {
    Vec next[kLanes];
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = __builtin_shuffle(square[i], square[i + kLanes / 2], low);
      next[2 * i + 1] = __builtin_shuffle(square[i], square[i + kLanes / 2], high);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) square[i] = next[i];
  }
}

/// Writes out [columns, width] = the transpose of x [rows, columns], as floats; columns of out beyond `rows`
/// are 0.
template <int64_t Width, class T>
static void transpose_tile(const T* x, int64_t x_step, int64_t rows, int64_t columns, float* out) {
  for (int64_t first = 0; first < Width; first += kLanes) {
    const int64_t stored = smaller(kLanes, Width - first), present = larger(0, smaller(stored, rows - first));
    for_lanes(columns, [&](int64_t column, auto lanes) {
      const T* from = x + first * x_step + column;
      float* to = out + column * Width + first;
      Vec square[kLanes];
      if (present == kLanes) {
#pragma GCC unroll 16
        for (int row = 0; row < kLanes; ++row) square[row] = load(from + row * x_step, lanes);
      } else {
        for (int row = 0; row < kLanes; ++row)
          square[row] = row < present ? load(from + row * x_step, lanes) : Vec{};
      }
      transpose(square);
      if (stored == kLanes) {
#pragma GCC unroll 16
        for (int i = 0; i < lanes.count; ++i) store(to + i * Width, square[i], Full{});
      } else {
        for (int i = 0; i < lanes.count; ++i)
          __builtin_memcpy(to + i * Width, &square[i], stored * sizeof(float));
      }
    });
  }
}

}  // namespace tycho::TYCHO_ISA
