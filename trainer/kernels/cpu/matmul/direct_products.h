// Products that read the weights in place, while the tokens, some hundred at a time, are laid out for them.
// Written once for every kind of tile: of fp32, and of the instructions for bf16.
//
// A Kind is a struct of constants and static functions:
//   Operand, Element        type in memory, and type that a tile multiplies: kPerElement consecutive operands
//                           along the depth
//   kRows                   rows of a whole tile, which has kTileColumns columns
//   elements(depth)         number of elements for that many operands, the last ones padded with zeros
//   lay_out_rows<Width>     [elements, Width] of a strip whose rows are contiguous along the depth
//   lay_out_element         one row of that, for a strip that is contiguous along its rows
//   kMayCopyRows, copies_rows(row_step)      false if the left operand's rows are used in place
//   LeftMemory, lay_out_left                 the left operand, if it is contiguous along its rows
//   kGradientRows, kGradientDepth            rows, and elements of the depth, that lay_out_left takes at most
//   Task                    lives as long as a thread multiplies
//   add_products            c = a · strip, or +=
#pragma once
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/matmul/tile_product.h"
#include "trainer/kernels/cpu/parallel.h"
#include "trainer/kernels/cpu/simd.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho::TYCHO_ISA {

inline constexpr int64_t kChunkTokens = 256;   // tokens at once: a step's depth of them fits the L2 cache
inline constexpr int64_t kPanelTokens = 1024;  // tokens for which a panel of weights is copied once
inline constexpr int64_t kLaidOutFloats = int64_t{3} << 20;  // size of the tokens that are summed over at
                                                             // once
inline constexpr int64_t kStepDepth = 256;    // elements: a strip of this depth stays in the L1 cache
inline constexpr int64_t kPanelColumns = 64;  // columns of a task: whole cache lines, one after the other
inline constexpr int64_t kRowsAhead = 16;
inline constexpr int64_t kTaskTokens = 64;       // tokens of a task that reads all weights
inline constexpr int64_t kFewGradientRows = 48;  // rows of a gradient in a task, where columns are few
inline constexpr int64_t kFewWeights = int64_t{1} << 19;  // elements that fit the caches
static_assert(kChunkTokens % kTileColumns == 0 && kPanelColumns % kTileColumns == 0);

/// Returns the distance between copied rows, at least `elements`, such that the rows of one tile share few
/// sets of a cache.
TYCHO_SIMD constexpr int64_t copied_row_step(int64_t elements) {
  const int64_t step = ceil_div(elements, 16) * 16 + 16;
  return step % 512 == 0 ? step + 16 : step;
}

template <class Kind>
using Left = TileLeftOf<typename Kind::Element>;

template <class T>
static void write_rows_of(const float* tile, int64_t tile_step, int64_t rows, int64_t columns,
                          const MatmulResult& result, int64_t row, int64_t column, int64_t step) {
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t at = (row + i) * step + column;
    for_lanes(columns, [&](int64_t j, auto lanes) {
      Vec x = load(tile + i * tile_step + j, lanes);
      if (result.added) x += load(static_cast<const T*>(result.added) + at + j, lanes);
      store(static_cast<T*>(result.data) + at + j, x, lanes);
    });
  }
}

/// Writes tile [rows, columns] (+ added) to the result, starting at (row, column).
static inline void write_tile(const float* tile, int64_t tile_step, int64_t rows, int64_t columns,
                              const MatmulResult& result, int64_t row, int64_t column, int64_t step) {
  if (result.dtype == Dtype::kFp32)
    write_rows_of<float>(tile, tile_step, rows, columns, result, row, column, step);
  else
    write_rows_of<Bf16>(tile, tile_step, rows, columns, result, row, column, step);
}

/// Calls body(first element, elements) for each step of the depth, of at most `step` elements.
template <class Body>
TYCHO_SIMD void for_steps(int64_t elements, int64_t step, const Body& body) {
  for (int64_t k = 0; k < elements; k += step) body(k, smaller(step, elements - k));
}

/// Lays out a strip [elements, width] that is contiguous along its rows, which are the columns here.
template <class Kind>
TYCHO_SIMD void lay_out_columns(const typename Kind::Operand* x, int64_t depth_step, int64_t depth,
                                int64_t columns, typename Kind::Element* out, int64_t width) {
  const int64_t elements = Kind::elements(depth);
  for (int64_t e = 0; e < elements; ++e) {
    const int64_t k = e * Kind::kPerElement;
    Kind::lay_out_element(x + k * depth_step, depth_step, depth - k, columns, out + e * width, width);
  }
}

/// Copies rows that are contiguous along the depth; elements beyond the depth are 0.
template <class Kind>
static void copy_rows(const typename Kind::Operand* x, int64_t row_step, int64_t rows, int64_t depth,
                      typename Kind::Element* out, int64_t out_step) {
  const int64_t bytes = depth * int64_t{sizeof *x}, all_bytes = Kind::elements(depth) * int64_t{sizeof *out};
  for (int64_t row = 0; row < rows; ++row) {
    auto* to = reinterpret_cast<char*>(out + row * out_step);
    const auto* from = reinterpret_cast<const char*>(x + row * row_step);
    int64_t at = 0;
    // Not one memcpy: GCC makes a string instruction of it, which waits for one cache line after the other.
    for (; at + int64_t{sizeof(Vec)} <= bytes; at += sizeof(Vec))
      __builtin_memcpy(to + at, from + at, sizeof(Vec));
    __builtin_memcpy(to + at, from + at, bytes - at);
    __builtin_memset(to + bytes, 0, all_bytes - bytes);
  }
}

/// Computes tokens · weightsᵀ, both contiguous along the depth. Rows of weights are the left operand of tiles
/// whose columns are tokens; a finished tile is transposed.
template <class Kind>
static void tokens_by_rows(MatmulShape shape, const MatmulOperand& tokens, const MatmulOperand& weights,
                           const MatmulResult& result) {
  using Operand = typename Kind::Operand;
  using Element = typename Kind::Element;
  constexpr int64_t kRows = Kind::kWeightRows, kCopyStep = copied_row_step(kStepDepth);
  const int64_t strips = ceil_div(shape.rows, kTileColumns), width = strips * kTileColumns;
  const int64_t elements = Kind::elements(shape.depth), strip_elements = elements * kTileColumns;
  auto* laid_out = static_cast<Element*>(caller_memory(strips * strip_elements * int64_t{sizeof(Element)}));
  const auto* x = static_cast<const Operand*>(tokens.data);
  const auto* w = static_cast<const Operand*>(weights.data);
  for_blocks(strips, strips * strip_elements, [&](int64_t s) {
    const int64_t row = s * kTileColumns;
    Kind::template lay_out_rows<kTileColumns>(x + row * tokens.row_step, tokens.row_step,
                                              smaller(kTileColumns, shape.rows - row), shape.depth,
                                              laid_out + s * strip_elements);
  });
  const int64_t work = shape.rows * shape.columns * shape.depth;
  for_blocks(ceil_div(shape.columns, kRows), work, [&](int64_t number) {
    [[maybe_unused]] const typename Kind::Task task;
    const int64_t first = number * kRows, rows = smaller(kRows, shape.columns - first);
    float tile[kRows * kChunkTokens], transposed[kRows * kTileColumns];
    Element copied[Kind::kMayCopyRows ? kRows * kCopyStep : 1];
    for_steps(elements, kStepDepth, [&](int64_t k, int64_t n) {
      const Operand* from = w + first * weights.row_step + k * Kind::kPerElement;
      Left<Kind> a = {copied, kCopyStep, 1};
      if (Kind::copies_rows(weights.row_step))
        copy_rows<Kind>(from, weights.row_step, rows,
                        smaller(n * Kind::kPerElement, shape.depth - k * Kind::kPerElement), copied,
                        kCopyStep);
      else if constexpr (Kind::kPerElement == 1)
        a = {from, weights.row_step, 1};
      for (int64_t s = 0; s < strips; ++s) {
        float* sums = tile + s * kTileColumns;
        Kind::add_products(k > 0, rows, n, a, laid_out + s * strip_elements + k * kTileColumns, sums, width);
        if (k + n < elements) continue;
        const int64_t row = s * kTileColumns, count = smaller(kTileColumns, shape.rows - row);
        transpose_tile<kRows>(sums, width, rows, count, transposed);
        write_tile(transposed, kRows, count, rows, result, row, first, shape.columns);
      }
    });
  });
}

/// Returns all tokens as the left operand: in place, or copied.
template <class Kind>
static Left<Kind> tokens_as_left(MatmulShape shape, const MatmulOperand& tokens) {
  using Element = typename Kind::Element;
  const auto* x = static_cast<const typename Kind::Operand*>(tokens.data);
  if constexpr (Kind::kPerElement == 1)
    if (!Kind::copies_rows(tokens.row_step)) return {x, tokens.row_step, 1};
  const int64_t blocks = ceil_div(shape.rows, Kind::kRows),
                step = copied_row_step(Kind::elements(shape.depth)), block = Kind::kRows * step;
  auto* copied = static_cast<Element*>(caller_memory(blocks * block * int64_t{sizeof(Element)}));
  for_blocks(blocks, blocks * block, [&](int64_t number) {
    const int64_t row = number * Kind::kRows;
    copy_rows<Kind>(x + row * tokens.row_step, tokens.row_step, smaller(Kind::kRows, shape.rows - row),
                    shape.depth, copied + row * step, step);
  });
  return {copied, step, 1};
}

/// Computes tokens · weights; weights are contiguous along the columns. A panel of weights is copied for one
/// step of the depth and used by all tokens.
template <class Kind>
static void tokens_by_columns(MatmulShape shape, const MatmulOperand& tokens, const MatmulOperand& weights,
                              const MatmulResult& result) {
  using Element = typename Kind::Element;
  const Left<Kind> left = tokens_as_left<Kind>(shape, tokens);
  const auto* w = static_cast<const typename Kind::Operand*>(weights.data);
  const int64_t work = shape.rows * shape.columns * shape.depth, w_step = weights.depth_step;
  for_blocks(ceil_div(shape.columns, kPanelColumns), work, [&](int64_t number) {
    [[maybe_unused]] const typename Kind::Task task;
    const int64_t first = number * kPanelColumns, columns = smaller(kPanelColumns, shape.columns - first);
    auto* tile = static_cast<float*>(
        thread_memory((kStepDepth + kPanelTokens) * kPanelColumns * int64_t{sizeof(float)}));
    auto* panel = reinterpret_cast<Element*>(tile + kPanelTokens * kPanelColumns);
    for_steps(Kind::elements(shape.depth), kStepDepth, [&](int64_t k, int64_t n) {
      for (int64_t row = 0; row < n; ++row) {
        const int64_t at_depth = (k + row) * Kind::kPerElement;
        const auto* from = w + at_depth * w_step + first;
        for (int64_t j = 0; j < columns; j += kTileColumns) {
          for (int64_t i = 0; i < Kind::kPerElement; ++i)  // each row is on its own page
            __builtin_prefetch(from + j + (kRowsAhead * Kind::kPerElement + i) * w_step);
          Kind::lay_out_element(from + j, w_step, shape.depth - at_depth, smaller(kTileColumns, columns - j),
                                panel + j * kStepDepth + row * kTileColumns, kTileColumns);
        }
      }
      for (int64_t row = 0; row < shape.rows; row += kChunkTokens)
        for (int64_t j = 0; j < columns; j += kTileColumns)
          Kind::add_products(k > 0, smaller(kChunkTokens, shape.rows - row), n,
                             Left<Kind>{left.data + row * left.row_step + k, left.row_step, 1},
                             panel + j * kStepDepth, tile + row * kPanelColumns + j, kPanelColumns);
    });
    write_tile(tile, kPanelColumns, shape.rows, columns, result, 0, first, shape.columns);
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
                           whole ? shape.columns : kTileColumns);
      });
      if (!whole) write_tile(tile, kTileColumns, rows, columns, result, first, column, shape.columns);
    }
  });
}

/// Prefetches the addends of a tile's rows.
TYCHO_SIMD void prefetch_rows(const float* x, int64_t step, int64_t rows) {
  for (int64_t row = 0; row < rows; ++row) __builtin_prefetch(x + row * step);
}

/// Rows of a gradient that a task sums, and elements of the depth at once.
struct GradientTask {
  int64_t rows, depth;
};

/// Returns tasks for a gradient [rows, columns]. Where many columns use what a task lays out, they are as
/// large as fits, and all threads have as many of them. Otherwise, where tasks are few, they are smaller, so
/// that two or four threads end at the same time.
template <class Kind>
TYCHO_SIMD GradientTask gradient_task(int64_t rows, int64_t columns) {
  constexpr int64_t kManyColumns = 384, kFewRows = smaller(kFewGradientRows, Kind::kGradientRows);
  constexpr int64_t kEvenRows = 32, kFewTasks = 4;
  static_assert(kEvenRows <= kFewRows);
  if (Kind::kGradientRows == kFewRows || columns < kManyColumns) {
    const bool few = rows < kFewTasks * kFewRows && rows % kFewRows != 0;
    return {few ? kEvenRows : kFewRows, kStepDepth};
  }
  const int64_t threads = loop_threads(), tiles = larger(1, ceil_div(rows, Kind::kRows)),
                rounds = ceil_div(tiles, Kind::kGradientRows / Kind::kRows * threads);
  return {ceil_div(tiles, rounds * threads) * Kind::kRows, Kind::kGradientDepth};
}

/// Computes the gradient of weights, in fp32: a sum over tokens, with both operands contiguous along the
/// result's dims. Whole tiles are summed in the result itself, which a thread keeps in its L2 cache from one
/// chunk of tokens to the next.
template <class Kind>
static void sum_over_tokens(MatmulShape shape, const MatmulOperand& left, const MatmulOperand& right,
                            const MatmulResult& result) {
  using Operand = typename Kind::Operand;
  using Element = typename Kind::Element;
  const GradientTask task = gradient_task<Kind>(shape.rows, shape.columns);
  const int64_t elements = Kind::elements(shape.depth), strips = ceil_div(shape.columns, kTileColumns),
                strip_elements = elements * kTileColumns;
  auto* laid_out = static_cast<Element*>(caller_memory(strips * strip_elements * int64_t{sizeof(Element)}));
  for_blocks(strips, strips * strip_elements, [&](int64_t s) {
    lay_out_columns<Kind>(static_cast<const Operand*>(right.data) + s * kTileColumns, right.depth_step,
                          shape.depth, smaller(kTileColumns, shape.columns - s * kTileColumns),
                          laid_out + s * strip_elements, kTileColumns);
  });
  const int64_t work = shape.rows * shape.columns * shape.depth;
  for_blocks(ceil_div(shape.rows, task.rows), work, [&](int64_t number) {
    [[maybe_unused]] const typename Kind::Task setup;
    const int64_t first = number * task.rows, rows = smaller(task.rows, shape.rows - first);
    alignas(64) float tile[Kind::kGradientRows * kTileColumns];
    auto& memory = *static_cast<typename Kind::LeftMemory*>(thread_memory(sizeof(typename Kind::LeftMemory)));
    for_steps(elements, task.depth, [&](int64_t k, int64_t n) {
      const int64_t at_depth = k * Kind::kPerElement;
      const Left<Kind> a = Kind::lay_out_left(
          static_cast<const Operand*>(left.data) + at_depth * left.depth_step + first, left.depth_step,
          smaller(n * Kind::kPerElement, shape.depth - at_depth), rows, memory);
      for (int64_t s = 0; s < strips; ++s) {
        const int64_t column = s * kTileColumns, columns = smaller(kTileColumns, shape.columns - column);
        // Tiles that are added to the result afterwards are summed over kStepDepth, whatever a task takes at
        // once: so the order of a sum does not depend on tasks.
        for (int64_t i = 0, count; i < n; i += count) {
          const MatmulResult sums = {result.data, result.dtype, k + i == 0 ? result.added : result.data};
          const bool in_place = sums.added == nullptr || sums.added == sums.data;
          const bool whole = in_place && columns == kTileColumns;
          count = whole ? n - i : smaller(kStepDepth, n - i);
          float* end = static_cast<float*>(sums.data) + first * shape.columns + column;
          if (sums.added && s + 1 < strips)
            prefetch_rows(end + kTileColumns, shape.columns, a.tile_step > 0 ? kTileRows : rows);
          Kind::add_products(whole && sums.added, rows, count,
                             Left<Kind>{a.data + i * a.k_step, a.row_step, a.k_step, a.tile_step},
                             laid_out + s * strip_elements + (k + i) * kTileColumns, whole ? end : tile,
                             whole ? shape.columns : kTileColumns);
          if (!whole) write_tile(tile, kTileColumns, rows, columns, sums, first, column, shape.columns);
        }
      }
    });
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
    const int64_t at_once = right.depth_step == 1 ? kChunkTokens : kPanelTokens;
    for (int64_t first = 0; first < shape.rows; first += at_once) {
      const MatmulShape chunk = {smaller(at_once, shape.rows - first), shape.columns, shape.depth};
      const MatmulOperand tokens = {advanced(left.data, left.dtype, first * left.row_step), left.dtype,
                                    left.row_step, 1};
      const int64_t at = first * shape.columns;
      const MatmulResult to = {static_cast<char*>(result.data) + at * bytes_of(result.dtype), result.dtype,
                               result.added ? advanced(result.added, result.dtype, at) : nullptr};
      right.depth_step == 1 ? tokens_by_rows<Kind>(chunk, tokens, right, to)
                            : tokens_by_columns<Kind>(chunk, tokens, right, to);
    }
    return true;
  }
  if (left.row_step != 1 || right.row_step != 1 || result.dtype != Dtype::kFp32) return false;
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
