// Tiles of pairs of bf16, multiplied by AVX-512's dot instruction and summed in fp32.
#pragma once
#include "trainer/kernels/cpu/matmul/direct_operands.h"
#include "trainer/kernels/cpu/matmul/tile_elements.h"
#include "trainer/kernels/cpu/matmul/tile_product.h"
#include "trainer/kernels/cpu/simd.h"

#if defined(__AVX512BF16__)
namespace tycho::TYCHO_ISA {

/// Lays out rows of bf16 that are contiguous along the depth as [elements, Width] pairs. Missing rows and
/// pairs beyond the depth are 0.
template <int64_t Width>
static void transpose_pairs(const Bf16* x, int64_t row_step, int64_t rows, int64_t depth, int64_t elements,
                            Pair* out) {
  for (int64_t first = 0; first < Width; first += kLanes) {
    const int64_t stored = smaller(kLanes, Width - first), present = larger(0, smaller(stored, rows - first));
    for (int64_t e = 0; e < elements; e += kLanes) {
      Vec square[kLanes] = {};
      const int64_t operands = smaller(2 * kLanes, larger(0, depth - 2 * e));
      const Bf16* from = x + first * row_step + 2 * e;
      if (operands == 2 * kLanes)
        for (int64_t row = 0; row < present; ++row) square[row] = lanes_of(from + row * row_step);
      else
        for (int64_t row = 0; row < present; ++row)
          __builtin_memcpy(&square[row], from + row * row_step, operands * int64_t{sizeof(Bf16)});
      transpose(square);
      for (int64_t i = 0; i < smaller(kLanes, elements - e); ++i)
        __builtin_memcpy(out + (e + i) * Width + first, &square[i], stored * int64_t{sizeof(Pair)});
    }
  }
}

/// Pairs each column of two rows of a tile. out: [kTileColumns].
TYCHO_SIMD void pair_whole_rows(const Bf16* first, const Bf16* second, Pair* out) {
  using Row = uint16_t __attribute__((vector_size(kTileColumns * sizeof(Bf16))));
  Row x, y, low, high;
  __builtin_memcpy(&x, first, sizeof x);
  __builtin_memcpy(&y, second, sizeof y);
  for (int i = 0; i < kTileColumns; ++i) {
    const int column = i / 2 + i % 2 * kTileColumns;
    low[i] = column, high[i] = column + kTileColumns / 2;
  }
  const Row pairs[2] = {__builtin_shuffle(x, y, low), __builtin_shuffle(x, y, high)};
  __builtin_memcpy(out, pairs, sizeof pairs);
}

/// Pairs each column of x's first row with that of its second, for the rows that the depth has. out: [width];
/// the rest is 0.
TYCHO_SIMD void pair_rows(const Bf16* x, int64_t depth_step, int64_t depth, int64_t columns, Pair* out,
                          int64_t width) {
  if (columns == kTileColumns && depth > 1) return pair_whole_rows(x, x + depth_step, out);
  const int64_t present = depth > 0 ? columns : 0;
  for_lanes(present, [&](int64_t i, auto lanes) {
    Half low{}, high{};
    __builtin_memcpy(&low, x + i, lanes.count * sizeof(Bf16));
    if (depth > 1) __builtin_memcpy(&high, x + depth_step + i, lanes.count * sizeof(Bf16));
    const Bits pairs = to_32_bits(low) | to_32_bits(high) << 16;
    __builtin_memcpy(out + i, &pairs, lanes.count * sizeof(Pair));
  });
  for (int64_t i = present; i < width; ++i) out[i] = {};
}

struct PairTiles {
  using Operand = Bf16;
  using Element = Pair;
  static constexpr int64_t kPerElement = 2, kRows = kTileRows;
  static constexpr int64_t kWeightRows = 48, kGradientRows = 48;  // rows of a task: a multiple of a tile's
                                                                  // rows
  static_assert(kWeightRows % kRows == 0 && kGradientRows % kRows == 0);
  static constexpr int64_t kWeightUnit = kWeightRows, kChunkTokens = 256;
  static constexpr int64_t kGradientDepth = kStepDepth;
  static constexpr Cuts cuts() { return {128, 128, false, false, 0}; }
  using LeftMemory = Pair[kStepDepth * kGradientRows];
  struct Task {};

  static int64_t elements(int64_t depth) { return ceil_div(depth, 2); }
  template <int64_t Width>
  static void lay_out_rows(const Bf16* x, int64_t row_step, int64_t rows, int64_t depth, Pair* out) {
    transpose_pairs<Width>(x, row_step, rows, depth, elements(depth), out);
  }
  TYCHO_SIMD_MEMBER static void lay_out_element(const Bf16* x, int64_t depth_step, int64_t depth,
                                                int64_t columns, Pair* out, int64_t width) {
    pair_rows(x, depth_step, depth, columns, out, width);
  }
  static constexpr bool kMayCopyRows = true;  // rows of an odd depth end within a pair
  static bool copies_rows(int64_t) { return true; }
  static Left<PairTiles> lay_out_left(const Bf16* x, int64_t depth_step, int64_t depth, int64_t rows,
                                      LeftMemory& memory) {
    lay_out_columns<PairTiles>(x, depth_step, depth, rows, memory, kGradientRows);
    return {memory, 1, kGradientRows};
  }
  static void add_products(bool add, int64_t rows, int64_t elements, Left<PairTiles> a, const Pair* strip,
                           float* c, int64_t c_width, Ahead ahead) {
    if (add)
      tile_product<true>(rows, kTileColumns, elements, a, strip, kTileColumns, c, c_width, ahead);
    else
      tile_product<false>(rows, kTileColumns, elements, a, strip, kTileColumns, c, c_width, ahead);
  }
};

}  // namespace tycho::TYCHO_ISA
#endif
