// Tiles of pairs of bf16, multiplied by AMX: a tile of 32 rows by 32 columns takes four of its registers, and
// the operands take the other four.
#pragma once
#include "trainer/kernels/cpu/matmul/direct_operands.h"
#include "trainer/kernels/cpu/matmul/pair_tiles.h"
#include "trainer/kernels/cpu/matmul/tile_elements.h"
#include "trainer/kernels/cpu/matmul/tile_product.h"
#include "trainer/kernels/cpu/simd.h"

#if defined(__AMX_BF16__)
namespace tycho::TYCHO_ISA {

/// Configures the calling thread's tile registers, each of 16 rows of 64 bytes, while it lives.
class AmxTask {
 public:
  AmxTask() {
    struct {
      uint8_t palette, start_row, reserved[14];
      uint16_t row_bytes[16];
      uint8_t rows[16];
    } config = {};
    static_assert(sizeof config == 64);
    config.palette = 1;
    for (int i = 0; i < 8; ++i) config.row_bytes[i] = 64, config.rows[i] = 16;
    asm volatile("" : : "r"(&config) : "memory");
    _tile_loadconfig(&config);
  }
  ~AmxTask() { _tile_release(); }
  AmxTask(const AmxTask&) = delete;
  AmxTask& operator=(const AmxTask&) = delete;
};

/// c [32, 32] = a [32, elements] · b [elements, 32], or += when add. Requires a multiple of 16 elements;
/// steps are in elements.
static void amx_product(bool add, const Pair* a, int64_t a_step, const Pair* b, int64_t elements, float* c,
                        int64_t c_step) {
  constexpr int64_t kBytes = 4, kSide = 16;
  const int64_t a_bytes = a_step * kBytes, b_bytes = kTileColumns * kBytes, c_bytes = c_step * kBytes;
  float* lower = c + kSide * c_step;
  asm volatile("" : : : "memory");  // the compiler does not know that tile loads read memory
  if (add) {
    _tile_loadd(0, c, c_bytes);
    _tile_loadd(1, c + kSide, c_bytes);
    _tile_loadd(2, lower, c_bytes);
    _tile_loadd(3, lower + kSide, c_bytes);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
  }
  for (int64_t e = 0; e < elements; e += kSide) {
    _tile_loadd(4, a + e, a_bytes);
    _tile_loadd(6, b + e * kTileColumns, b_bytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(7, b + e * kTileColumns + kSide, b_bytes);
    _tile_dpbf16ps(1, 4, 7);
    _tile_loadd(5, a + kSide * a_step + e, a_bytes);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, c, c_bytes);
  _tile_stored(1, c + kSide, c_bytes);
  _tile_stored(2, lower, c_bytes);
  _tile_stored(3, lower + kSide, c_bytes);
  asm volatile("" : : : "memory");
}

TYCHO_SIMD void copy_sums(const float* from, int64_t from_step, int64_t rows, float* to, int64_t to_step) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < kTileColumns; i += kLanes)
      store(to + row * to_step + i, load(from + row * from_step + i, Full{}), Full{});
}

struct AmxTiles {
  using Operand = Bf16;
  using Element = Pair;
  static constexpr int64_t kPerElement = 2, kRows = 32, kWeightRows = 32, kGradientRows = 32;
  static constexpr int64_t kElementsAtOnce = 16, kChunkTokens = 256;
  static_assert(kTileColumns == 32 && kStepDepth % kElementsAtOnce == 0 && kChunkTokens % kRows == 0);
  static constexpr int64_t kWeightUnit = kWeightRows;
  static constexpr int64_t kGradientDepth = kStepDepth;
  static constexpr Cuts cuts() { return {kStepDepth, 64, false, false, 0}; }
  struct LeftMemory {
    Pair by_columns[kStepDepth * kGradientRows];
    float by_rows[kGradientRows * copied_row_step(kStepDepth)];  // the bits of pairs
  };
  using Task = AmxTask;

  static int64_t elements(int64_t depth) { return ceil_div(depth, 2 * kElementsAtOnce) * kElementsAtOnce; }
  template <int64_t Width>
  static void lay_out_rows(const Bf16* x, int64_t row_step, int64_t rows, int64_t depth, Pair* out) {
    transpose_pairs<Width>(x, row_step, rows, depth, elements(depth), out);
  }
  TYCHO_SIMD_MEMBER static void lay_out_element(const Bf16* x, int64_t depth_step, int64_t depth,
                                                int64_t columns, Pair* out, int64_t width) {
    pair_rows(x, depth_step, depth, columns, out, width);
  }
  static constexpr bool kMayCopyRows = true;
  static bool copies_rows(int64_t) { return true; }
  /// Lays out the left operand, whose rows must be contiguous along the depth for AMX.
  static Left<AmxTiles> lay_out_left(const Bf16* x, int64_t depth_step, int64_t depth, int64_t rows,
                                     LeftMemory& memory) {
    constexpr int64_t kStep = copied_row_step(kStepDepth);
    lay_out_columns<AmxTiles>(x, depth_step, depth, rows, memory.by_columns, kGradientRows);
    transpose_tile<kStep>(reinterpret_cast<const float*>(memory.by_columns), kGradientRows, elements(depth),
                          kGradientRows, memory.by_rows);
    return {reinterpret_cast<const Pair*>(memory.by_rows), kStep, 1};
  }
  static void add_products(bool add, int64_t rows, int64_t elements, Left<AmxTiles> a, const Pair* strip,
                           float* c, int64_t c_width, Ahead) {
    for (int64_t row = 0; row < rows; row += kRows) {
      float* to = c + row * c_width;
      const Pair* from = a.data + row * a.row_step;
      if (row + kRows <= rows) {
        amx_product(add, from, a.row_step, strip, elements, to, c_width);
        continue;
      }
      float tile[kRows * kTileColumns];
      if (add) copy_sums(to, c_width, rows - row, tile, kTileColumns);
      amx_product(add, from, a.row_step, strip, elements, tile, kTileColumns);
      copy_sums(tile, kTileColumns, rows - row, to, c_width);
    }
  }
};

}  // namespace tycho::TYCHO_ISA
#endif
