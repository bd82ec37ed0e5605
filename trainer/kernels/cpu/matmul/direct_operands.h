// Operands, tasks and results of products of linear layers. Written once for every kind of tile: of fp32, and
// of the instructions for bf16.
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
//   kWeightUnit, kWeightRows                 a task has at most kWeightRows rows of weights, a multiple of
//                                            units
//   kChunkTokens            tokens at once
//   cuts()                  what this processor computes at once
//   Task                    lives as long as a thread multiplies
//   add_products            c = a · strip, or +=; may fetch what is ahead
#pragma once
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/matmul/tile_product.h"
#include "trainer/kernels/cpu/parallel.h"
#include "trainer/kernels/cpu/simd.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho::TYCHO_ISA {

inline constexpr int64_t kPanelTokens = 1024;  // tokens for which a panel of weights is copied once
inline constexpr int64_t kLaidOutFloats = int64_t{3} << 20;  // size of the tokens that are summed over at
                                                             // once
inline constexpr int64_t kStepDepth = 256;     // elements: a strip of this depth stays in the L1 cache
inline constexpr int64_t kShallowDepth = 128;  // elements: strips of this depth cost little to read again
inline constexpr int64_t kRowsAhead = 16;
inline constexpr int64_t kTaskTokens = 64;       // tokens of a task that reads all weights
inline constexpr int64_t kFewGradientRows = 48;  // rows of a gradient in a task, where columns are few
inline constexpr int64_t kManyColumns = 384;     // columns that pay for laying out what they all use
inline constexpr int64_t kFewWeights = int64_t{1} << 19;  // elements that fit the caches

/// Returns the distance between copied rows, at least `elements`, such that the rows of one tile share few
/// sets of a cache.
TYCHO_SIMD constexpr int64_t copied_row_step(int64_t elements) {
  const int64_t step = ceil_div(elements, 16) * 16 + 16;
  return step % 512 == 0 ? step + 16 : step;
}

/// Sizes that a processor's caches prefer. Results have the same bits for any.
struct Cuts {
  int64_t strip_depth;     // elements of the depth at once, where the left operand is laid out
  int64_t panel_columns;   // columns of a panel of weights
  bool tokens_as_tiles;    // tokens that many columns use are laid out as tiles
  bool columns_in_place;   // weights that are contiguous along the columns are used in place, without panels
  int64_t gradient_width;  // most rows and columns of a gradient whose operands are used in place
};

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

/// Consecutive tiles of rows, or strips of columns.
struct Share {
  int64_t first, count;
};

/// Number of tasks for `tiles`: each has at most `most`, and all threads have as many of them.
TYCHO_SIMD int64_t even_tasks(int64_t tiles, int64_t most) {
  const int64_t threads = loop_threads(), rounds = ceil_div(tiles, most * threads);
  return smaller(tiles, rounds * threads);
}

TYCHO_SIMD Share share_of(int64_t tiles, int64_t tasks, int64_t number) {
  const int64_t first = tiles * number / tasks;
  return {first, tiles * (number + 1) / tasks - first};
}

}  // namespace tycho::TYCHO_ISA
