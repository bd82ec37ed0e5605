// fp32 products of linear layers.
#include "trainer/kernels/cpu/matmul/direct_matmul.h"

#include "trainer/kernels/cpu/matmul/direct_products.h"
#include "trainer/kernels/cpu/processor.h"

namespace tycho::TYCHO_ISA {
namespace {

struct Fp32Tiles {
  using Operand = float;
  using Element = float;
  static constexpr int64_t kPerElement = 1, kRows = kTileRows;
  // Rows of weights in a task: whole tiles and whole vectors. Their sums for a chunk of tokens fit the L2
  // cache.
  static constexpr int64_t kWeightUnit = 3 * kLanes, kWeightRows = 2 * kWeightUnit,
                           kChunkTokens = 32 * kLanes;
  // A task's rows of a gradient, for so many tokens, fit the L2 cache (384 KiB with AVX-512, 192 else), and
  // its sums are read and written seldom.
  static constexpr int64_t kGradientRows = 12 * kLanes, kGradientDepth = 512;
  static_assert(kWeightUnit % kRows == 0 && kGradientRows % kRows == 0);
  using LeftMemory = float[kGradientDepth * kGradientRows];
  struct Task {};

  /// AVX-512 on Intel's processors wants strips that fill half of the L1 cache, between which tiles of tokens
  /// pass by; on AMD's (Zen 4) twice that depth and tokens in place are 1.04 to 1.2 times as fast, and
  /// weights in place up to 1.7 times. There, gradients with both operands in place are up to 1.4 times as
  /// fast; with AVX2, only narrow ones are.
  static Cuts cuts() {
    static const bool amd = is_amd();
    if (kLanes < 16) return {kStepDepth, 64, false, false, amd ? 512 : 0};
    return amd ? Cuts{kStepDepth, 64, false, true, INT64_MAX} : Cuts{128, 128, true, false, 0};
  }
  static int64_t elements(int64_t depth) { return depth; }
  template <int64_t Width>
  static void lay_out_rows(const float* x, int64_t row_step, int64_t rows, int64_t depth, float* out) {
    transpose_tile<Width>(x, row_step, rows, depth, out);
  }
  TYCHO_SIMD_MEMBER static void lay_out_element(const float* x, int64_t, int64_t, int64_t columns, float* out,
                                                int64_t width) {
    copy_tile(x, 0, 1, columns, 1.0f, out, width);
  }
  // Six rows fit a cache at any addresses. Twelve rows that are a multiple of 2 KiB apart do not: they would
  // share two sets of the L1 cache, or one.
  static constexpr bool kMayCopyRows = kTileRows > 8;
  static bool copies_rows(int64_t row_step) { return kMayCopyRows && row_step % 512 == 0; }
  static TileLeft lay_out_left(const float* x, int64_t depth_step, int64_t depth, int64_t rows,
                               LeftMemory& memory) {
    if (rows <= kFewGradientRows) {
      copy_tile(x, depth_step, depth, rows, 1.0f, memory, kFewGradientRows);
      return {memory, 1, kFewGradientRows};
    }
    // Each tile's rows lie together: between those of other tiles they would fill the L1 cache. Some tiles at
    // once, because a line of x has the rows of several.
    constexpr int64_t kTilesAtOnce = 4, kAtOnce = kTilesAtOnce * kTileRows;
    int64_t row = 0;
    for (; row + kAtOnce <= rows; row += kAtOnce)
      for (int64_t k = 0; k < depth; ++k)
        for (int64_t tile = 0; tile < kTilesAtOnce; ++tile)
          copy_row<kTileRows>(x + k * depth_step + row + tile * kTileRows,
                              memory + (row + tile * kTileRows) * depth + k * kTileRows);
    for (; row < rows; row += kTileRows)
      for (int64_t k = 0; k < depth; ++k)
        copy_tile(x + k * depth_step + row, 0, 1, smaller(kTileRows, rows - row), 1.0f,
                  memory + row * depth + k * kTileRows, kTileRows);
    return {memory, 1, kTileRows, kTileRows * depth};
  }
  static void add_products(bool add, int64_t rows, int64_t depth, TileLeft a, const float* strip, float* c,
                           int64_t c_width, Ahead ahead) {
    // Only many rows of a gradient have tiles of their own, and their sums are far away.
    if (a.tile_step > 0)
      multiply<true>(add, rows, depth, a, strip, c, c_width, ahead);
    else
      multiply<false>(add, rows, depth, a, strip, c, c_width, ahead);
  }

 private:
  template <bool Fetch>
  static void multiply(bool add, int64_t rows, int64_t depth, TileLeft a, const float* strip, float* c,
                       int64_t c_width, Ahead ahead) {
    if (add)
      tile_product<true, Fetch>(rows, kTileColumns, depth, a, strip, kTileColumns, c, c_width, ahead);
    else
      tile_product<false, Fetch>(rows, kTileColumns, depth, a, strip, kTileColumns, c, c_width, ahead);
  }
};

}  // namespace

bool direct_matmul(MatmulShape shape, const MatmulOperand& left, const MatmulOperand& right,
                   const MatmulResult& result) {
  if (left.dtype != Dtype::kFp32 || right.dtype != Dtype::kFp32 || result.dtype != Dtype::kFp32) return false;
  return direct_product<Fp32Tiles>(shape, left, right, result);
}

}  // namespace tycho::TYCHO_ISA
