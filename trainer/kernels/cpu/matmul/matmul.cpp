// Matrix products on the CPU: both operands are laid out as fp32 strips, then tiles of the result are taken
// by threads one by one.                                              (Goto & van de Geijn 2008; BLIS, Van
// Zee 2015)
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/matmul/direct_matmul.h"
#include "trainer/kernels/cpu/matmul/tile_product.h"
#include "trainer/kernels/cpu/parallel.h"

namespace tycho::TYCHO_ISA {
namespace {

// A task's operands fit the L2 cache, a strip of the right one the L1; a block's strips fit 24 MiB.
constexpr int64_t kTaskRows = 96, kTaskColumns = 12 * kTileColumns, kTaskDepth = 256;
constexpr int64_t kBlockRows = 16 * kTaskRows, kBlockColumns = 1536, kStripFloats = int64_t{6} << 20;
/// Largest number of rows for which the right operand is read once in place: laying it out would cost more
/// than the product.
constexpr int kFewRows = 8;
/// Rows and columns of the result that are summed at once: their sums, in two chains each, leave few of the
/// 32, 16 or 16 registers.
constexpr int kDotRows = kLanes == 16 ? 4 : kLanes == 8 ? 3 : 2, kDotColumns = kLanes == 16 ? 3 : 2;
/// Columns of a task of such products: few, so that threads end at the same time.
constexpr int64_t kDotTaskColumns = 48;
/// Returns the steps of the depth of a task that reads whole rows of the right operand: enough that the sums
/// of all tasks stay small beside it.
TYCHO_SIMD int64_t task_steps(int64_t depth) {
  constexpr int64_t kLeast = 96, kMostTasks = 32, kSteps = 4;
  return larger(kLeast, ceil_div(depth, kMostTasks * kSteps) * kSteps);
}
static_assert(kTaskRows % kTileRows == 0 && kBlockColumns % kTaskColumns == 0);

/// Lays out `count` rows of an operand, `depth` of each, as a strip of Width rows, k-major; missing rows are
/// 0.
template <int64_t Width, class T>
void lay_out(const T* x, int64_t row_step, int64_t k_step, int64_t count, int64_t depth, float* strip) {
  if (k_step == 1) return transpose_tile<Width>(x, row_step, count, depth, strip);
  if (count == Width) {
    for (int64_t k = 0; k < depth; ++k) copy_row<Width>(x + k * k_step, strip + k * Width);
    return;
  }
  for (int64_t k = 0; k < depth; ++k) {
    copy_tile(x + k * k_step, 0, 1, count, 1.0f, strip + k * Width, Width);
  }
}

/// Operand whose rows are laid out in strips: the left one unchanged, the right one transposed.
template <int64_t Width>
struct Strips {
  MatmulOperand from;
  int64_t first_row, rows, first_k, depth;
  float* memory;

  int64_t count() const { return ceil_div(rows, Width); }
  const float* strip(int64_t number) const { return memory + number * Width * depth; }
  void fill(int64_t number) const {
    if (from.dtype == Dtype::kFp32)
      fill_from(static_cast<const float*>(from.data), number);
    else
      fill_from(static_cast<const Bf16*>(from.data), number);
  }

 private:
  template <class T>
  void fill_from(const T* data, int64_t number) const {
    const int64_t row = number * Width;
    lay_out<Width>(data + (first_row + row) * from.row_step + first_k * from.depth_step, from.row_step,
                   from.depth_step, smaller(Width, rows - row), depth, memory + number * Width * depth);
  }
};

using LeftStrips = Strips<kTileRows>;
using RightStrips = Strips<kTileColumns>;

/// Destination of a block's products: sums over the depth, then the result, once.
struct Sums {
  MatmulResult result;
  int64_t columns;   // columns of the whole result
  float* partial;    // [block rows, kBlockColumns]; null when one block holds the whole depth
  bool first, last;  // true for the first and last block along the depth
};

template <class T>
void write_rows(const float* tile, int64_t rows, int64_t columns, const T* added, T* to, int64_t to_step) {
  for (int64_t row = 0; row < rows; ++row)
    for_lanes(columns, [&](int64_t i, auto lanes) {
      Vec x = load(tile + row * kTaskColumns + i, lanes);
      if (added) x += load(added + row * to_step + i, lanes);
      store(to + row * to_step + i, x, lanes);
    });
}

void write(const float* tile, int64_t rows, int64_t columns, const MatmulResult& result, int64_t offset,
           int64_t step) {
  if (result.dtype == Dtype::kFp32) {
    const auto* added = static_cast<const float*>(result.added);
    write_rows(tile, rows, columns, added ? added + offset : nullptr,
               static_cast<float*>(result.data) + offset, step);
  } else {
    const auto* added = static_cast<const Bf16*>(result.added);
    write_rows(tile, rows, columns, added ? added + offset : nullptr,
               static_cast<Bf16*>(result.data) + offset, step);
  }
}

/// Computes one tile of a block: rows and columns from (row, column) on, counted within the block.
void compute_tile(const LeftStrips& left, const RightStrips& right, const Sums& sums, int64_t row,
                  int64_t column) {
  auto* tile = static_cast<float*>(thread_memory(kTaskRows * kTaskColumns * int64_t{sizeof(float)}));
  const int64_t rows = smaller(kTaskRows, left.rows - row),
                columns = smaller(kTaskColumns, right.rows - column);
  for (int64_t k = 0; k < left.depth; k += kTaskDepth) {
    const int64_t depth = smaller(kTaskDepth, left.depth - k);
    for (int64_t j = 0; j < columns; j += kTileColumns) {
      const float* b = right.strip((column + j) / kTileColumns) + k * kTileColumns;
      for (int64_t i = 0; i < rows; i += kTileRows) {
        const TileLeft a = {left.strip((row + i) / kTileRows) + k * kTileRows, 1, kTileRows};
        float* c = tile + i * kTaskColumns + j;
        if (k == 0)
          product_of_rows<kTileRows, false>(a, b, kTileColumns, depth, c, kTaskColumns,
                                            RowsAhead{reinterpret_cast<const char*>(b), 128});
        else
          product_of_rows<kTileRows, true>(a, b, kTileColumns, depth, c, kTaskColumns,
                                           RowsAhead{reinterpret_cast<const char*>(b), 128});
      }
    }
  }
  float* partial = sums.partial ? sums.partial + row * kBlockColumns + column : nullptr;
  if (!sums.first)
    for (int64_t i = 0; i < rows; ++i)
      for_lanes(columns, [&](int64_t j, auto lanes) {
        float* at = tile + i * kTaskColumns + j;
        store(at, load(at, lanes) + load(partial + i * kBlockColumns + j, lanes), lanes);
      });
  if (sums.last)
    write(tile, rows, columns, sums.result, (left.first_row + row) * sums.columns + right.first_row + column,
          sums.columns);
  else
    write_rows<float>(tile, rows, columns, nullptr, partial, kBlockColumns);
}

void compute_block(const LeftStrips& left, const RightStrips& right, const Sums& sums) {
  const int64_t work = left.rows * right.rows * left.depth;
  for_blocks(left.count() + right.count(), work, [&](int64_t number) {
    number < right.count() ? right.fill(number) : left.fill(number - right.count());
  });
  // Goes down a column of tiles first, because these share the right operand's strips.
  const int64_t tile_rows = ceil_div(left.rows, kTaskRows);
  for_blocks(tile_rows * ceil_div(right.rows, kTaskColumns), work, [&](int64_t number) {
    compute_tile(left, right, sums, number % tile_rows * kTaskRows, number / tile_rows * kTaskColumns);
  });
}

/// Sums the lanes of Count vectors, each in the order of sum_lanes(); x[0] has the sums in its first lanes.
/// Vectors have Size lanes of each sum when called.
template <int Size, int Count>
TYCHO_SIMD void sum_lanes_of(Vec* x) {
  if constexpr (Size > 1) {
    Ints low, high;
    for (int lane = 0; lane < kLanes; ++lane) {
      low[lane] = lane / (Size / 2) * Size + lane % (Size / 2);
      high[lane] = low[lane] + Size / 2;
    }
#pragma GCC unroll 16
    for (int i = 0; i < Count; i += 2) {
      const Vec a = x[i], b = x[i + 1 < Count ? i + 1 : i];
      x[i / 2] = __builtin_shuffle(a, b, low) + __builtin_shuffle(a, b, high);
    }
    sum_lanes_of<Size / 2, (Count + 1) / 2>(x);
  }
}

/// Keeps a vector that several products take in a register; the compiler would load it for each of them.
TYCHO_SIMD Vec in_register(Vec x) {
#if defined(__x86_64__) && !defined(TYCHO_EMULATED)
  asm("" : "+v"(x));
#endif
  return x;
}

/// Part of the next right rows that a tile fetches while it is computed: of `turns` pieces, every piece whose
/// turn it is. Tiles of the same right rows share this, so that memory works all the time.
struct Fetch {
  int64_t ahead;  // elements from the right rows to the next ones
  int turn, turns;
};

/// Computes Columns elements of the result's only row, one after the other: so memory is read from end to
/// end, as fast as it can be. Each is summed in the order of dot_products().
template <int Columns, class R>
TYCHO_SIMD void dot_each(const float* left, const R* right, int64_t right_step, int64_t depth, float* out) {
  Vec whole[Columns];
#pragma GCC unroll 16
  for (int column = 0; column < Columns; ++column) {
    const R* x = right + column * right_step;
    Vec sums[2] = {};
    int64_t k = 0;
    for (; k + 2 * kLanes <= depth; k += 2 * kLanes) {
      sums[0] += load(left + k, Full{}) * load(x + k, Full{});
      sums[1] += load(left + k + kLanes, Full{}) * load(x + k + kLanes, Full{});
    }
    for_lanes(depth - k,
              [&](int64_t i, auto lanes) { sums[0] += load(left + k + i, lanes) * load(x + k + i, lanes); });
    whole[column] = sums[0] + sums[1];
  }
  sum_lanes_of<kLanes, Columns>(whole);
  for (int column = 0; column < Columns; ++column) out[column] = whole[0][column];
}

/// Computes Rows x Columns elements of the result: dot products of left rows with right ones, both
/// contiguous. Each is summed in the same order for any Rows and Columns.
template <int Rows, int Columns, class R>
TYCHO_SIMD void dot_products(const float* left, const R* right, int64_t right_step, int64_t depth,
                             Fetch fetch, float* out) {
  constexpr int64_t kLine = 64 / int64_t{sizeof(R)};
  Vec sums[Rows * Columns][2] = {};
  int64_t k = 0, next_fetch = fetch.turn * 2 * kLanes;
  for (; k + 2 * kLanes <= depth; k += 2 * kLanes) {  // two chains of sums hide the latency of an addition
    if (k == next_fetch) {
      next_fetch += fetch.turns * 2 * kLanes;
      for (int column = 0; column < Columns; ++column)
        for (int64_t at = 0; at < 2 * kLanes; at += kLine)
          __builtin_prefetch(right + column * right_step + k + fetch.ahead + at);
    }
#pragma GCC unroll 2
    for (int chain = 0; chain < 2; ++chain) {
      const int64_t at = k + chain * kLanes;
      Vec x[Columns];
#pragma GCC unroll 4
      for (int column = 0; column < Columns; ++column)
        x[column] = load(right + column * right_step + at, Full{});
#pragma GCC unroll 4
      for (int row = 0; row < Rows; ++row) {
        const Vec a = in_register(load(left + row * depth + at, Full{}));
#pragma GCC unroll 4
        for (int column = 0; column < Columns; ++column) sums[row * Columns + column][chain] += a * x[column];
      }
    }
  }
  for_lanes(depth - k, [&](int64_t i, auto lanes) {
    Vec x[Columns];
    for (int column = 0; column < Columns; ++column)
      x[column] = load(right + column * right_step + k + i, lanes);
    for (int row = 0; row < Rows; ++row) {
      const Vec a = load(left + row * depth + k + i, lanes);
      for (int column = 0; column < Columns; ++column) sums[row * Columns + column][0] += a * x[column];
    }
  });
  Vec whole[Rows * Columns];
#pragma GCC unroll 16
  for (int i = 0; i < Rows * Columns; ++i) whole[i] = sums[i][0] + sums[i][1];
  static_assert(Rows * Columns <= kLanes);
  sum_lanes_of<kLanes, Rows * Columns>(whole);
  for (int row = 0; row < Rows; ++row)
    for (int column = 0; column < Columns; ++column)
      out[row * kTaskColumns + column] = whole[0][row * Columns + column];
}

/// Computes Columns columns of the result, some rows at a time.
template <int Rows, int Columns, class R>
TYCHO_SIMD void dot_columns(const float* left, const R* right, int64_t right_step, int64_t depth, Fetch fetch,
                            float* out) {
  constexpr int kAtOnce = Rows < kDotRows ? Rows : kDotRows;
  dot_products<kAtOnce, Columns>(left, right, right_step, depth, fetch, out);
  if constexpr (Rows > kAtOnce)
    dot_columns<Rows - kAtOnce, Columns>(left + kAtOnce * depth, right, right_step, depth,
                                         {fetch.ahead, fetch.turn + 1, fetch.turns},
                                         out + kAtOnce * kTaskColumns);
}

/// Computes a result [Rows, columns] of a right operand that is contiguous along the depth.
template <int Rows, class R>
void dot_rows(const float* left, const R* right, int64_t right_step, int64_t columns, int64_t depth,
              float* tile) {
  constexpr int kTurns = (Rows + kDotRows - 1) / kDotRows;
  int64_t column = 0;
  if constexpr (Rows == 1) {
    for (; column + kLanes <= columns; column += kLanes)
      dot_each<kLanes>(left, right + column * right_step, right_step, depth, tile + column);
    for (; column < columns; ++column)
      dot_each<1>(left, right + column * right_step, right_step, depth, tile + column);
    return;
  }
  for (; column + kDotColumns <= columns; column += kDotColumns)
    dot_columns<Rows, kDotColumns>(left, right + column * right_step, right_step, depth,
                                   {kDotColumns * right_step, 0, kTurns}, tile + column);
  for (; column < columns; ++column)
    dot_columns<Rows, 1>(left, right + column * right_step, right_step, depth, {right_step, 0, kTurns},
                         tile + column);
}

/// Adds Steps steps of the depth to `columns` sums of Rows rows; the right operand is contiguous along its
/// columns.
template <int Rows, int Steps, class R>
TYCHO_SIMD void add_steps(const float* left, int64_t depth, const R* right, int64_t right_step,
                          int64_t columns, float* sums) {
  for_lanes(columns, [&](int64_t i, auto lanes) {
    Vec x[Steps];
#pragma GCC unroll 16
    for (int k = 0; k < Steps; ++k) x[k] = load(right + k * right_step + i, lanes);
    for (int row = 0; row < Rows; ++row) {
      float* at = sums + row * columns + i;
      Vec sum = load(at, lanes);
#pragma GCC unroll 16
      for (int k = 0; k < Steps; ++k) sum += broadcast(left[row * depth + k]) * x[k];
      store(at, sum, lanes);
    }
  });
}

/// Computes a result [Rows, columns] of a right operand that is contiguous along its columns. A task reads
/// some steps of the depth, which lie one after the other, whole; `partials` are their sums, [tasks, Rows,
/// columns]. Tasks depend on the depth alone, as do bits.
template <int Rows, class R>
void sums_of_steps(MatmulShape shape, const float* left, const R* right, int64_t right_step,
                   const MatmulResult& result, float* partials) {
  // One load and store of the sums for so many products, which fill half of the registers.
  constexpr int kSteps = kLanes == 16 ? 16 : 4;
  const int64_t steps = task_steps(shape.depth), tasks = ceil_div(shape.depth, steps),
                sums = Rows * shape.columns;
  for_blocks(tasks, shape.columns * shape.depth, [&](int64_t task) {
    float* to = partials + task * sums;
    __builtin_memset(to, 0, sums * sizeof(float));
    int64_t k = task * steps;
    const int64_t end = smaller(shape.depth, k + steps);
    for (; k + kSteps <= end; k += kSteps)
      add_steps<Rows, kSteps>(left + k, shape.depth, right + k * right_step, right_step, shape.columns, to);
    for (; k < end; ++k)
      add_steps<Rows, 1>(left + k, shape.depth, right + k * right_step, right_step, shape.columns, to);
  });
  for_blocks(ceil_div(shape.columns, kTaskColumns), tasks * sums, [&](int64_t number) {
    float tile[Rows * kTaskColumns];
    const int64_t first = number * kTaskColumns, columns = smaller(kTaskColumns, shape.columns - first);
    for (int64_t row = 0; row < Rows; ++row)
      for_lanes(columns, [&](int64_t i, auto lanes) {
        const float* from = partials + row * shape.columns + first + i;
        Vec sum = load(from, lanes);
        for (int64_t task = 1; task < tasks; ++task) sum += load(from + task * sums, lanes);
        store(tile + row * kTaskColumns + i, sum, lanes);
      });
    write(tile, Rows, columns, result, first, shape.columns);
  });
}

/// Computes a result [Rows, columns], reading the right operand once in place. left: [Rows, depth].
template <int Rows, class R>
void few_rows(MatmulShape shape, const float* left, const R* right, const MatmulOperand& from,
              const MatmulResult& result, float* partials) {
  if constexpr (Rows > 0) {
    if (shape.rows != Rows) return few_rows<Rows - 1>(shape, left, right, from, result, partials);
    if (from.depth_step != 1)
      return sums_of_steps<Rows>(shape, left, right, from.depth_step, result, partials);
    for_blocks(ceil_div(shape.columns, kDotTaskColumns), shape.columns * shape.depth, [&](int64_t number) {
      float tile[Rows * kTaskColumns];
      const int64_t first = number * kDotTaskColumns,
                    columns = smaller(kDotTaskColumns, shape.columns - first);
      dot_rows<Rows>(left, right + first * from.row_step, from.row_step, columns, shape.depth, tile);
      write(tile, Rows, columns, result, first, shape.columns);
    });
  }
}

template <class L>
void widen_rows(MatmulShape shape, const L* left, int64_t step, float* out) {
  for (int64_t row = 0; row < shape.rows; ++row)
    for_lanes(shape.depth, [&](int64_t i, auto lanes) {
      store(out + row * shape.depth + i, load(left + row * step + i, lanes), lanes);
    });
}

void few_rows(MatmulShape shape, const MatmulOperand& left, const MatmulOperand& right,
              const MatmulResult& result) {
  const int64_t sums =
      right.depth_step == 1 ? 0 : ceil_div(shape.depth, task_steps(shape.depth)) * shape.columns;
  auto* rows = static_cast<float*>(caller_memory(shape.rows * (shape.depth + sums) * int64_t{sizeof(float)}));
  float* partials = rows + shape.rows * shape.depth;
  if (left.dtype == Dtype::kFp32)
    widen_rows(shape, static_cast<const float*>(left.data), left.row_step, rows);
  else
    widen_rows(shape, static_cast<const Bf16*>(left.data), left.row_step, rows);
  if (right.dtype == Dtype::kFp32)
    few_rows<kFewRows>(shape, rows, static_cast<const float*>(right.data), right, result, partials);
  else
    few_rows<kFewRows>(shape, rows, static_cast<const Bf16*>(right.data), right, result, partials);
}

}  // namespace

void matmul(MatmulShape shape, MatmulOperand left, MatmulOperand right, MatmulResult result, Stream) {
  if (shape.rows <= kFewRows && left.depth_step == 1 && (right.depth_step == 1 || right.row_step == 1))
    return few_rows(shape, left, right, result);
  if (direct_matmul(shape, left, right, result)) return;
  const int64_t rows_max = ceil_div(smaller(shape.rows, kBlockRows), kTileRows) * kTileRows,
                columns_max = tile_width(smaller(shape.columns, kBlockColumns)),
                depth_max = smaller(shape.depth, kStripFloats / (rows_max + columns_max));
  const bool deep = depth_max < shape.depth;
  const int64_t floats = (rows_max + columns_max) * depth_max + (deep ? rows_max * kBlockColumns : 0);
  auto* memory = static_cast<float*>(caller_memory(floats * int64_t{sizeof(float)}));
  float* right_memory = memory + rows_max * depth_max;
  float* partial = deep ? right_memory + columns_max * depth_max : nullptr;
  for (int64_t column = 0; column < shape.columns; column += kBlockColumns)
    for (int64_t row = 0; row < shape.rows; row += kBlockRows)
      for (int64_t k = 0; k < shape.depth; k += depth_max) {
        const int64_t depth = smaller(depth_max, shape.depth - k);
        compute_block({left, row, smaller(kBlockRows, shape.rows - row), k, depth, memory},
                      {right, column, smaller(kBlockColumns, shape.columns - column), k, depth, right_memory},
                      {result, shape.columns, partial, k == 0, k + depth == shape.depth});
      }
}

}  // namespace tycho::TYCHO_ISA
