// Products that read the weights where they lie: the tokens, some hundred at a time, are laid out for them.
#include "trainer/kernels/cpu/direct_matmul.h"

#include "trainer/kernels/cpu/parallel.h"
#include "trainer/kernels/cpu/tile_product.h"

namespace tycho::TYCHO_ISA {
namespace {

constexpr int64_t kChunkTokens = 256;                 // at once: a step's depth of them fits the L2 cache
constexpr int64_t kPanelTokens = 1024;                // for which a panel of weights is copied once
constexpr int64_t kLaidOutFloats = int64_t{3} << 20;  // of the tokens that a gradient is summed over at once
constexpr int64_t kStepDepth = 256;                   // a strip of it stays in the L1 cache
constexpr int64_t kPanelColumns = 64;                 // of a task: whole lines of memory, one after the other
constexpr int64_t kRowsAhead = 16;
constexpr int64_t kWeightRows = 24;    // of a task: tiles fill it, and so do vectors
constexpr int64_t kGradientRows = 48;  // likewise
static_assert(kChunkTokens % kTileColumns == 0 && kPanelColumns % kTileColumns == 0);
static_assert(kWeightRows % kTileRows == 0 && kGradientRows % kTileRows == 0);

float* floats(void* memory) { return static_cast<float*>(memory); }
const float* floats(const void* memory) { return static_cast<const float*>(memory); }

/// result = tile [rows, columns] (+ added), from (row, column) of the result on.
void write_tile(const float* tile, int64_t tile_step, int64_t rows, int64_t columns,
                const MatmulResult& result, int64_t row, int64_t column, int64_t step) {
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t at = (row + i) * step + column;
    for_lanes(columns, [&](int64_t j, auto lanes) {
      Vec x = load(tile + i * tile_step + j, lanes);
      if (result.added) x += load(floats(result.added) + at + j, lanes);
      store(floats(result.data) + at + j, x, lanes);
    });
  }
}

/// Adds up over the depth in steps: body(k, depth of the step, whether sums are there already).
template <class Body>
TYCHO_SIMD void for_steps(int64_t depth, const Body& body) {
  for (int64_t k = 0; k < depth; k += kStepDepth) body(k, smaller(kStepDepth, depth - k));
}

TYCHO_SIMD void add_products(bool add, int64_t rows, int64_t depth, TileLeft a, const float* strip, float* c,
                             int64_t c_width) {
  if (add)
    tile_product<true>(rows, kTileColumns, depth, a, strip, kTileColumns, c, c_width);
  else
    tile_product<false>(rows, kTileColumns, depth, a, strip, kTileColumns, c, c_width);
}

/// tokens · weightsᵀ, both contiguous along the depth. Rows of weights are the left operand of tiles whose
/// columns are tokens; a tile is transposed on its way out.
void tokens_by_rows(MatmulShape shape, const MatmulOperand& tokens, const MatmulOperand& weights,
                    const MatmulResult& result) {
  const int64_t strips = ceil_div(shape.rows, kTileColumns), width = strips * kTileColumns;
  float* laid_out = floats(caller_memory(width * shape.depth * int64_t{sizeof(float)}));
  for_blocks(strips, width * shape.depth, [&](int64_t s) {
    transpose_tile<kTileColumns>(floats(tokens.data) + s * kTileColumns * tokens.row_step, tokens.row_step,
                                 smaller(kTileColumns, shape.rows - s * kTileColumns), shape.depth,
                                 laid_out + s * kTileColumns * shape.depth);
  });
  const int64_t work = shape.rows * shape.columns * shape.depth;
  for_blocks(ceil_div(shape.columns, kWeightRows), work, [&](int64_t number) {
    const int64_t first = number * kWeightRows, rows = smaller(kWeightRows, shape.columns - first);
    float tile[kWeightRows * kChunkTokens], transposed[kWeightRows * kChunkTokens];
    for_steps(shape.depth, [&](int64_t k, int64_t depth) {
      const TileLeft a = {floats(weights.data) + first * weights.row_step + k, weights.row_step, 1};
      for (int64_t s = 0; s < strips; ++s)
        add_products(k > 0, rows, depth, a, laid_out + (s * shape.depth + k) * kTileColumns,
                     tile + s * kTileColumns, width);
    });
    transpose_tile<kWeightRows>(tile, width, rows, shape.rows, transposed);
    write_tile(transposed, kWeightRows, shape.rows, rows, result, 0, first, shape.columns);
  });
}

/// tokens · weights; weights are contiguous along the columns. A panel of them is copied for one step of the
/// depth and used by all tokens.
void tokens_by_columns(MatmulShape shape, const MatmulOperand& tokens, const MatmulOperand& weights,
                       const MatmulResult& result) {
  const int64_t work = shape.rows * shape.columns * shape.depth;
  for_blocks(ceil_div(shape.columns, kPanelColumns), work, [&](int64_t number) {
    const int64_t first = number * kPanelColumns, columns = smaller(kPanelColumns, shape.columns - first);
    float* panel =
        floats(thread_memory((kStepDepth + kPanelTokens) * kPanelColumns * int64_t{sizeof(float)}));
    float* tile = panel + kStepDepth * kPanelColumns;
    for_steps(shape.depth, [&](int64_t k, int64_t depth) {
      const float* from = floats(weights.data) + k * weights.depth_step + first;
      for (int64_t row = 0; row < depth; ++row)
        for (int64_t j = 0; j < columns; j += kTileColumns) {
          const float* at = from + row * weights.depth_step + j;
          __builtin_prefetch(at + kRowsAhead * weights.depth_step);  // each row is on a page of its own
          copy_tile(at, 0, 1, smaller(kTileColumns, columns - j), 1.0f,
                    panel + j * kStepDepth + row * kTileColumns, kTileColumns);
        }
      for (int64_t row = 0; row < shape.rows; row += kChunkTokens)
        for (int64_t j = 0; j < columns; j += kTileColumns)
          add_products(k > 0, smaller(kChunkTokens, shape.rows - row), depth,
                       {floats(tokens.data) + row * tokens.row_step + k, tokens.row_step, 1},
                       panel + j * kStepDepth, tile + row * kPanelColumns + j, kPanelColumns);
    });
    write_tile(tile, kPanelColumns, shape.rows, columns, result, 0, first, shape.columns);
  });
}

/// Asks for what the sums of a tile's rows will be added to.
TYCHO_SIMD void prefetch_rows(const float* x, int64_t step, int64_t rows) {
  for (int64_t row = 0; row < rows; ++row) __builtin_prefetch(x + row * step);
}

/// The gradient of weights: a sum over tokens, both operands contiguous along the result's dims. Whole tiles
/// are added up where they end, which a thread keeps in its L2 cache from one chunk of tokens to the next.
void sum_over_tokens(MatmulShape shape, const MatmulOperand& left, const MatmulOperand& right,
                     const MatmulResult& result) {
  const int64_t strips = ceil_div(shape.columns, kTileColumns), strip_floats = shape.depth * kTileColumns;
  float* laid_out = floats(caller_memory(strips * strip_floats * int64_t{sizeof(float)}));
  for_blocks(strips, strips * strip_floats, [&](int64_t s) {
    copy_tile(floats(right.data) + s * kTileColumns, right.depth_step, shape.depth,
              smaller(kTileColumns, shape.columns - s * kTileColumns), 1.0f, laid_out + s * strip_floats,
              kTileColumns);
  });
  const int64_t work = shape.rows * shape.columns * shape.depth;
  for_blocks(ceil_div(shape.rows, kGradientRows), work, [&](int64_t number) {
    const int64_t first = number * kGradientRows, rows = smaller(kGradientRows, shape.rows - first);
    float tile[kGradientRows * kTileColumns], rows_of_left[kStepDepth * kGradientRows];
    for_steps(shape.depth, [&](int64_t k, int64_t depth) {
      const MatmulResult sums = {result.data, result.dtype, k == 0 ? result.added : result.data};
      const bool in_place = sums.added == nullptr || sums.added == sums.data;
      copy_tile(floats(left.data) + k * left.depth_step + first, left.depth_step, depth, rows, 1.0f,
                rows_of_left, kGradientRows);
      for (int64_t s = 0; s < strips; ++s) {
        const int64_t column = s * kTileColumns, columns = smaller(kTileColumns, shape.columns - column);
        const bool whole = in_place && columns == kTileColumns;
        float* end = floats(sums.data) + first * shape.columns + column;
        if (sums.added && s + 1 < strips) prefetch_rows(end + kTileColumns, shape.columns, rows);
        add_products(whole && sums.added, rows, depth, {rows_of_left, 1, kGradientRows},
                     laid_out + s * strip_floats + k * kTileColumns, whole ? end : tile,
                     whole ? shape.columns : kTileColumns);
        if (!whole) write_tile(tile, kTileColumns, rows, columns, sums, first, column, shape.columns);
      }
    });
  });
}

}  // namespace

bool direct_matmul(MatmulShape shape, const MatmulOperand& left, const MatmulOperand& right,
                   const MatmulResult& result) {
  if (left.dtype != Dtype::kFp32 || right.dtype != Dtype::kFp32 || result.dtype != Dtype::kFp32) return false;
  if (left.depth_step == 1 && (right.depth_step == 1 || right.row_step == 1)) {
    const int64_t at_once = right.depth_step == 1 ? kChunkTokens : kPanelTokens;
    for (int64_t first = 0; first < shape.rows; first += at_once) {
      const MatmulShape chunk = {smaller(at_once, shape.rows - first), shape.columns, shape.depth};
      const MatmulOperand tokens = {floats(left.data) + first * left.row_step, left.dtype, left.row_step, 1};
      const int64_t at = first * shape.columns;
      const MatmulResult to = {floats(result.data) + at, result.dtype,
                               result.added ? floats(result.added) + at : nullptr};
      right.depth_step == 1 ? tokens_by_rows(chunk, tokens, right, to)
                            : tokens_by_columns(chunk, tokens, right, to);
    }
    return true;
  }
  if (left.row_step != 1 || right.row_step != 1) return false;
  const int64_t at_once = larger(1, kLaidOutFloats / (shape.columns * kStepDepth)) * kStepDepth;
  for (int64_t first = 0; first < shape.depth; first += at_once) {
    const MatmulShape chunk = {shape.rows, shape.columns, smaller(at_once, shape.depth - first)};
    sum_over_tokens(chunk, {floats(left.data) + first * left.depth_step, left.dtype, 1, left.depth_step},
                    {floats(right.data) + first * right.depth_step, right.dtype, 1, right.depth_step},
                    {result.data, result.dtype, first == 0 ? result.added : result.data});
  }
  return true;
}

}  // namespace tycho::TYCHO_ISA
