// Products of a linear layer: those that read the weights in place, while the tokens, some hundred at a time,
// are laid out for them, and the choice between them and those of direct_gradients.h.
#pragma once
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/matmul/direct_gradients.h"
#include "trainer/kernels/cpu/matmul/direct_operands.h"
#include "trainer/kernels/cpu/matmul/tile_product.h"
#include "trainer/kernels/cpu/parallel.h"
#include "trainer/kernels/cpu/simd.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho::TYCHO_ISA {

/// Returns all tokens laid out in strips.
template <class Kind>
static const typename Kind::Element* tokens_as_strips(MatmulShape shape, const MatmulOperand& tokens) {
  using Element = typename Kind::Element;
  const int64_t strips = ceil_div(shape.rows, kTileColumns),
                strip_elements = Kind::elements(shape.depth) * kTileColumns;
  auto* laid_out = static_cast<Element*>(caller_memory(strips * strip_elements * int64_t{sizeof(Element)}));
  const auto* x = static_cast<const typename Kind::Operand*>(tokens.data);
  for_blocks(strips, strips * strip_elements, [&](int64_t s) {
    const int64_t row = s * kTileColumns;
    Kind::template lay_out_rows<kTileColumns>(x + row * tokens.row_step, tokens.row_step,
                                              smaller(kTileColumns, shape.rows - row), shape.depth,
                                              laid_out + s * strip_elements);
  });
  return laid_out;
}

/// Computes tokens · weightsᵀ, or tokens · weights. Rows of weights (columns without ᵀ) are the left operand
/// of tiles whose columns are tokens; a finished tile is transposed.
template <class Kind>
static void tokens_by_rows(MatmulShape shape, const MatmulOperand& tokens, const MatmulOperand& weights,
                           const MatmulResult& result) {
  using Operand = typename Kind::Operand;
  using Element = typename Kind::Element;
  constexpr int64_t kRows = Kind::kWeightRows, kCopyStep = copied_row_step(kStepDepth);
  const int64_t strips = ceil_div(shape.rows, kTileColumns), width = strips * kTileColumns;
  const int64_t elements = Kind::elements(shape.depth), strip_elements = elements * kTileColumns;
  const Element* laid_out = tokens_as_strips<Kind>(shape, tokens);
  const auto* w = static_cast<const Operand*>(weights.data);
  const int64_t work = shape.rows * shape.columns * shape.depth;
  constexpr int64_t kUnit = Kind::kWeightUnit;
  const int64_t units = ceil_div(shape.columns, kUnit), tasks = even_tasks(units, kRows / kUnit);
  for_blocks(tasks, work, [&](int64_t number) {
    [[maybe_unused]] const typename Kind::Task task;
    const Share share = share_of(units, tasks, number);
    const int64_t first = share.first * kUnit, rows = smaller(share.count * kUnit, shape.columns - first);
    auto* tile = static_cast<float*>(thread_memory(kRows * Kind::kChunkTokens * int64_t{sizeof(float)}));
    float transposed[kRows * kTileColumns];
    Element copied[Kind::kMayCopyRows ? kRows * kCopyStep : 1];
    for_steps(elements, kStepDepth, [&](int64_t k, int64_t n) {
      const Operand* from = w + first * weights.row_step + k * Kind::kPerElement * weights.depth_step;
      Left<Kind> a = {copied, kCopyStep, 1};
      if (weights.depth_step == 1 && Kind::copies_rows(weights.row_step))
        copy_rows<Kind>(from, weights.row_step, rows,
                        smaller(n * Kind::kPerElement, shape.depth - k * Kind::kPerElement), copied,
                        kCopyStep);
      else if constexpr (Kind::kPerElement == 1)
        a = {from, weights.row_step, weights.depth_step};
      for (int64_t s = 0; s < strips; ++s) {
        float* sums = tile + s * kTileColumns;
        const Element* strip = laid_out + s * strip_elements + k * kTileColumns;
        // Fetches the next strip of tokens; with the last strip, the rows of weights that come next: those of
        // the next step of the depth, or of the next task.
        const Element* next = s + 1 < strips ? strip + strip_elements : laid_out + (k + n) * kTileColumns;
        Ahead ahead = {next, n * kTileColumns * int64_t{sizeof(Element)}};
        if (s + 1 == strips && weights.depth_step == 1)
          ahead = Ahead::of_rows(
              k + n < elements ? from + n * Kind::kPerElement : w + (first + rows) * weights.row_step,
              n * Kind::kPerElement * int64_t{sizeof(Operand)}, rows,
              weights.row_step * int64_t{sizeof(Operand)}, n);
        Kind::add_products(k > 0, rows, n, a, strip, sums, width, ahead);
        if (k + n < elements) continue;
        const int64_t row = s * kTileColumns, count = smaller(kTileColumns, shape.rows - row);
        transpose_tile<kRows>(sums, width, rows, count, transposed);
        write_tile(transposed, kRows, count, rows, result, row, first, shape.columns);
      }
    });
  });
}

/// All tokens as the left operand: steps of the depth are `depth_step` elements apart.
template <class Kind>
struct TokensAsLeft {
  Left<Kind> rows;
  int64_t strip_depth, depth_step;

  Left<Kind> from(int64_t row, int64_t k) const {
    const Left<Kind> a = rows.from_row(row);
    return {a.data + (a.tile_step > 0 ? k / strip_depth * depth_step : k), a.row_step, a.k_step, a.tile_step};
  }
};

/// Returns all tokens as the left operand: in place, or laid out.
template <class Kind>
static TokensAsLeft<Kind> tokens_as_left(MatmulShape shape, const MatmulOperand& tokens, Cuts cuts) {
  using Element = typename Kind::Element;
  const auto* x = static_cast<const typename Kind::Operand*>(tokens.data);
  if constexpr (Kind::kPerElement == 1) {
    const bool as_tiles =
        cuts.tokens_as_tiles && (Kind::copies_rows(tokens.row_step) || shape.columns >= kManyColumns);
    if (as_tiles) {
      // Tiles of a step of the depth lie one after the other, so that products can fetch the next ones.
      const int64_t strip_depth = cuts.strip_depth;
      const int64_t tiles = ceil_div(shape.rows, kTileRows), step = tiles * kTileRows * strip_depth;
      auto* memory = static_cast<Element*>(
          caller_memory(ceil_div(shape.depth, strip_depth) * step * int64_t{sizeof(Element)}));
      for_blocks(tiles, tiles * kTileRows * shape.depth, [&](int64_t tile) {
        const int64_t row = tile * kTileRows;
        for_steps(shape.depth, strip_depth, [&](int64_t k, int64_t n) {
          Kind::template lay_out_rows<kTileRows>(x + row * tokens.row_step + k, tokens.row_step,
                                                 smaller(kTileRows, shape.rows - row), n,
                                                 memory + k / strip_depth * step + row * strip_depth);
        });
      });
      return {{memory, 1, kTileRows, kTileRows * strip_depth}, strip_depth, step};
    }
    if (!Kind::copies_rows(tokens.row_step)) return {{x, tokens.row_step, 1}, 1, 1};
  }
  const int64_t blocks = ceil_div(shape.rows, Kind::kRows),
                step = copied_row_step(Kind::elements(shape.depth)), block = Kind::kRows * step;
  auto* copied = static_cast<Element*>(caller_memory(blocks * block * int64_t{sizeof(Element)}));
  for_blocks(blocks, blocks * block, [&](int64_t number) {
    const int64_t row = number * Kind::kRows;
    copy_rows<Kind>(x + row * tokens.row_step, tokens.row_step, smaller(Kind::kRows, shape.rows - row),
                    shape.depth, copied + row * step, step);
  });
  return {{copied, step, 1}, 1, 1};
}

/// Computes tokens · weights; weights are contiguous along the columns. A panel of weights is copied for one
/// step of the depth and used by all tokens.
template <class Kind>
static void tokens_by_columns(MatmulShape shape, const MatmulOperand& tokens, const MatmulOperand& weights,
                              const MatmulResult& result) {
  using Element = typename Kind::Element;
  constexpr int64_t kTokens = Kind::kChunkTokens / Kind::kRows * Kind::kRows;
  const Cuts cuts = Kind::cuts();
  const int64_t panel_columns = cuts.panel_columns, strip_depth = cuts.strip_depth;
  const TokensAsLeft<Kind> left = tokens_as_left<Kind>(shape, tokens, cuts);
  const auto* w = static_cast<const typename Kind::Operand*>(weights.data);
  const int64_t work = shape.rows * shape.columns * shape.depth, w_step = weights.depth_step;
  const int64_t strips = ceil_div(shape.columns, kTileColumns),
                tasks = even_tasks(strips, panel_columns / kTileColumns);
  for_blocks(tasks, work, [&](int64_t number) {
    [[maybe_unused]] const typename Kind::Task task;
    const Share share = share_of(strips, tasks, number);
    const int64_t first = share.first * kTileColumns,
                  columns = smaller(share.count * kTileColumns, shape.columns - first);
    auto* tile = static_cast<float*>(
        thread_memory((strip_depth + kPanelTokens) * panel_columns * int64_t{sizeof(float)}));
    auto* panel = reinterpret_cast<Element*>(tile + kPanelTokens * panel_columns);
    for_steps(Kind::elements(shape.depth), strip_depth, [&](int64_t k, int64_t n) {
      for (int64_t row = 0; row < n; ++row) {
        const int64_t at_depth = (k + row) * Kind::kPerElement;
        const auto* from = w + at_depth * w_step + first;
        for (int64_t j = 0; j < columns; j += kTileColumns) {
          for (int64_t i = 0; i < Kind::kPerElement; ++i)  // each row is on its own page
            __builtin_prefetch(from + j + (kRowsAhead * Kind::kPerElement + i) * w_step);
          Kind::lay_out_element(from + j, w_step, shape.depth - at_depth, smaller(kTileColumns, columns - j),
                                panel + j * strip_depth + row * kTileColumns, kTileColumns);
        }
      }
      // While this panel is multiplied, the next one is fetched: of the next step of the depth, or of the
      // next task.
      const int64_t next_depth = (k + n) * Kind::kPerElement;
      Ahead panel_ahead =
          Ahead::of_rows(next_depth < shape.depth ? w + next_depth * w_step + first : w + first + columns,
                         columns * int64_t{sizeof *w}, n * Kind::kPerElement, w_step * int64_t{sizeof *w}, n);
      for (int64_t row = 0; row < shape.rows; row += kTokens) {
        const int64_t rows = smaller(kTokens, shape.rows - row);
        const Left<Kind> a = left.from(row, k);
        // Tokens that are laid out as tiles are read again for each strip; meanwhile the next chunk of them
        // is fetched, a part with each strip.
        const int64_t part = kTokens * strip_depth * int64_t{sizeof(Element)} * kTileColumns / columns /
                             kPieceBytes * kPieceBytes;
        const auto* next = reinterpret_cast<const char*>(left.from(row + kTokens, k).data);
        for (int64_t j = 0; j < columns; j += kTileColumns, next += part) {
          Kind::add_products(k > 0, rows, n, a, panel + j * strip_depth, tile + row * panel_columns + j,
                             panel_columns, a.tile_step > 0 ? Ahead{next, part} : panel_ahead);
          panel_ahead.first += rows / kTileRows * (n / kPieceSteps);
        }
      }
    });
    write_tile(tile, panel_columns, shape.rows, columns, result, 0, first, shape.columns);
  });
}

/// Computes tokens · weights, or tokens · weightsᵀ, of weights that are few beside the tokens: all are laid
/// out first, then tasks take tokens, in place, and whole tiles are summed in the result itself.
template <class Kind>
static void tokens_by_strips(MatmulShape shape, const MatmulOperand& tokens, const MatmulOperand& weights,
                             const MatmulResult& result) {
  const int64_t strips = ceil_div(shape.columns, kTileColumns), strip_elements = shape.depth * kTileColumns;
  auto* laid_out = static_cast<float*>(caller_memory(strips * strip_elements * int64_t{sizeof(float)}));
  const auto* w = static_cast<const float*>(weights.data);
  for_blocks(strips, strips * strip_elements, [&](int64_t s) {
    const int64_t first = s * kTileColumns, columns = smaller(kTileColumns, shape.columns - first);
    float* strip = laid_out + s * strip_elements;
    if (weights.depth_step == 1)
      Kind::template lay_out_rows<kTileColumns>(w + first * weights.row_step, weights.row_step, columns,
                                                shape.depth, strip);
    else
      lay_out_columns<Kind>(w + first, weights.depth_step, shape.depth, columns, strip, kTileColumns);
  });
  const int64_t work = shape.rows * shape.columns * shape.depth;
  for_blocks(ceil_div(shape.rows, kTaskTokens), work, [&](int64_t number) {
    const int64_t first = number * kTaskTokens, rows = smaller(kTaskTokens, shape.rows - first);
    Left<Kind> a = {static_cast<const float*>(tokens.data) + first * tokens.row_step, tokens.row_step, 1};
    if (Kind::copies_rows(tokens.row_step)) {
      const int64_t step = copied_row_step(shape.depth);
      auto* copied = static_cast<float*>(thread_memory(kTaskTokens * step * int64_t{sizeof(float)}));
      copy_rows<Kind>(a.data, a.row_step, rows, shape.depth, copied, step);
      a = {copied, step, 1};
    }
    float tile[kTaskTokens * kTileColumns];
    for (int64_t s = 0; s < strips; ++s) {
      const int64_t column = s * kTileColumns, columns = smaller(kTileColumns, shape.columns - column);
      const bool whole = !result.added && columns == kTileColumns;
      float* to = whole ? static_cast<float*>(result.data) + first * shape.columns + column : tile;
      for_steps(shape.depth, kStepDepth, [&](int64_t k, int64_t n) {
        Kind::add_products(k > 0, rows, n, {a.data + k, a.row_step, 1},
                           laid_out + s * strip_elements + k * kTileColumns, to,
                           whole ? shape.columns : kTileColumns, Ahead());
      });
      if (!whole) write_tile(tile, kTileColumns, rows, columns, result, first, column, shape.columns);
    }
  });
}

TYCHO_SIMD int64_t bytes_of(Dtype dtype) { return dtype == Dtype::kFp32 ? 4 : 2; }

TYCHO_SIMD const void* advanced(const void* x, Dtype dtype, int64_t by) {
  return static_cast<const char*>(x) + by * bytes_of(dtype);
}

/// True where laying out all weights costs far less than laying out the tokens and transposing their results,
/// and results are so few beside the products that the order in which they are written does not matter.
TYCHO_SIMD bool few_weights(MatmulShape shape) {
  constexpr int64_t kLeastDepth = 64;
  const int64_t weights = shape.columns * shape.depth;
  return shape.depth >= kLeastDepth && weights <= kFewWeights &&
         4 * weights <= shape.rows * (shape.depth + shape.columns);
}

/// Computes a product of a linear layer: tokens times weights, or its gradients. Returns false, without
/// computing, for operands with other steps. Both must have the Kind's dtype.
template <class Kind>
static bool direct_product(MatmulShape shape, const MatmulOperand& left, const MatmulOperand& right,
                           const MatmulResult& result) {
  if (left.depth_step == 1 && (right.depth_step == 1 || right.row_step == 1)) {
    if constexpr (Kind::kPerElement == 1)
      if (few_weights(shape)) return tokens_by_strips<Kind>(shape, left, right, result), true;
    // A strip of tokens that is mostly empty costs more than a panel.
    const bool by_rows =
        right.depth_step == 1 || (Kind::cuts().columns_in_place && 2 * shape.rows > kTileColumns);
    const int64_t most = by_rows ? Kind::kChunkTokens : kPanelTokens;
    // Chunks of about as many tokens: weights are copied for each of them.
    const int64_t chunks = larger(1, ceil_div(shape.rows, most));
    const int64_t at_once = larger(1, ceil_div(shape.rows, chunks * kTileColumns)) * kTileColumns;
    for (int64_t first = 0; first < shape.rows; first += at_once) {
      const MatmulShape chunk = {smaller(at_once, shape.rows - first), shape.columns, shape.depth};
      const MatmulOperand tokens = {advanced(left.data, left.dtype, first * left.row_step), left.dtype,
                                    left.row_step, 1};
      const int64_t at = first * shape.columns;
      const MatmulResult to = {static_cast<char*>(result.data) + at * bytes_of(result.dtype), result.dtype,
                               result.added ? advanced(result.added, result.dtype, at) : nullptr};
      by_rows ? tokens_by_rows<Kind>(chunk, tokens, right, to)
              : tokens_by_columns<Kind>(chunk, tokens, right, to);
    }
    return true;
  }
  if (left.row_step != 1 || right.row_step != 1 || result.dtype != Dtype::kFp32) return false;
  if constexpr (Kind::kPerElement == 1)
    if (sums_in_place<Kind>(shape, result))
      return sum_over_tokens_in_place<Kind>(shape, left, right, result), true;
  const int64_t at_once =
      larger(1, kLaidOutFloats / (shape.columns * kStepDepth)) * kStepDepth * Kind::kPerElement;
  for (int64_t first = 0; first < shape.depth; first += at_once) {
    const MatmulShape chunk = {shape.rows, shape.columns, smaller(at_once, shape.depth - first)};
    sum_over_tokens<Kind>(
        chunk, {advanced(left.data, left.dtype, first * left.depth_step), left.dtype, 1, left.depth_step},
        {advanced(right.data, right.dtype, first * right.depth_step), right.dtype, 1, right.depth_step},
        {result.data, result.dtype, first == 0 ? result.added : result.data});
  }
  return true;
}

}  // namespace tycho::TYCHO_ISA
