// Gradients of weights: products that sum over tokens.
#pragma once
#include "trainer/kernels/cpu/matmul/direct_operands.h"
#include "trainer/kernels/cpu/matmul/tile_product.h"
#include "trainer/kernels/cpu/parallel.h"
#include "trainer/kernels/cpu/simd.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho::TYCHO_ISA {

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
  constexpr int64_t kFewRows = smaller(kFewGradientRows, Kind::kGradientRows);
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
  const int64_t strip_depth = Kind::cuts().strip_depth;
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
      // With few tokens, the time goes into writing the result: some rows are finished before the next ones
      // begin, so that a task writes to few pages at once.
      const int64_t at_once = elements <= kShallowDepth ? smaller(kFewGradientRows, rows) : rows,
                    turns = ceil_div(rows, at_once) * strips;
      for (int64_t turn = 0; turn < turns; ++turn) {
        const int64_t s = turn % strips, row = turn / strips * at_once,
                      end_row = smaller(rows, row + at_once);
        const int64_t column = s * kTileColumns, columns = smaller(kTileColumns, shape.columns - column);
        const Left<Kind> of_rows = a.from_row(row);
        // Tiles that are added to the result afterwards are summed over kStepDepth, whatever a task takes at
        // once: so the order of a sum does not depend on tasks.
        for (int64_t i = 0, count; i < n; i += count) {
          const MatmulResult sums = {result.data, result.dtype, k + i == 0 ? result.added : result.data};
          const bool in_place = sums.added == nullptr || sums.added == sums.data;
          const bool whole = in_place && columns == kTileColumns;
          count = smaller(whole ? strip_depth : kStepDepth, n - i);
          float* end = static_cast<float*>(sums.data) + (first + row) * shape.columns + column;
          if (sums.added && s + 1 < strips)
            prefetch_rows(end + kTileColumns, shape.columns, a.tile_step > 0 ? kTileRows : end_row - row);
          const Element* strip = laid_out + s * strip_elements + (k + i) * kTileColumns;
          Kind::add_products(whole && sums.added, end_row - row, count,
                             Left<Kind>{of_rows.data + i * a.k_step, a.row_step, a.k_step, a.tile_step},
                             strip, whole ? end : tile, whole ? shape.columns : kTileColumns,
                             {strip + strip_elements, count * kTileColumns * int64_t{sizeof(Element)}});
          if (!whole)
            write_tile(tile, kTileColumns, end_row - row, columns, sums, first + row, column, shape.columns);
        }
      }
    });
  });
}

/// True where sum_over_tokens_in_place computes the gradient: the processor wants it, all strips are whole,
/// and there are so many tokens that sum_over_tokens would read and write the result once more for each step
/// of the depth.
template <class Kind>
static bool sums_in_place(MatmulShape shape, const MatmulResult& result) {
  return shape.depth > kStepDepth && shape.columns % kTileColumns == 0 &&
         larger(shape.rows, shape.columns) <= Kind::cuts().gradient_width &&
         (result.added == nullptr || result.added == result.data);
}

/// Computes what sum_over_tokens does, to the bit, with both operands in place. Their rows share sets of the
/// L1 cache, so each tile reads them from the L2 cache again, which takes less time than copying them.
template <class Kind>
static void sum_over_tokens_in_place(MatmulShape shape, const MatmulOperand& left, const MatmulOperand& right,
                                     const MatmulResult& result) {
  using Element = typename Kind::Element;
  constexpr int64_t kUnit = 4, kMostRows = 96, kDepth = 32 * kLanes;
  const int64_t units = ceil_div(shape.rows, kUnit), tasks = even_tasks(units, kMostRows / kUnit);
  const int64_t work = shape.rows * shape.columns * shape.depth;
  for_blocks(tasks, work, [&](int64_t number) {
    const Share share = share_of(units, tasks, number);
    const int64_t first = share.first * kUnit, rows = smaller(share.count * kUnit, shape.rows - first);
    float* sums = static_cast<float*>(result.data) + first * shape.columns;
    for_steps(shape.depth, kDepth, [&](int64_t k, int64_t n) {
      const Left<Kind> a = {static_cast<const Element*>(left.data) + k * left.depth_step + first, 1,
                            left.depth_step};
      const auto* strip = static_cast<const Element*>(right.data) + k * right.depth_step;
      for (int64_t column = 0; column < shape.columns; column += kTileColumns, strip += kTileColumns) {
        const Ahead ahead = Ahead::of_rows(strip + kTileColumns, kTileColumns * int64_t{sizeof(Element)}, n,
                                           right.depth_step * int64_t{sizeof(Element)}, n);
        const auto product =
            k > 0 || result.added ? &tile_product<true, true, Element> : &tile_product<false, true, Element>;
        product(rows, kTileColumns, n, a, strip, right.depth_step, sums + column, shape.columns, ahead);
      }
    });
  });
}

}  // namespace tycho::TYCHO_ISA
