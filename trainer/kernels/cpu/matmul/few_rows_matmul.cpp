// Products of a few rows, which take as long as memory takes to deliver the weights.
#include "trainer/kernels/cpu/matmul/few_rows_matmul.h"

#include "trainer/kernels/cpu/matmul/direct_operands.h"
#include "trainer/kernels/cpu/parallel.h"
#include "trainer/kernels/cpu/simd.h"

namespace tycho::TYCHO_ISA {
namespace {

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
/// Columns of a task that adds up the sums of others; a tile's rows are as far apart.
constexpr int64_t kTaskColumns = 12 * kTileColumns;

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

/// Computes Columns elements of a result of one row, one after the other, so that memory is read in order,
/// which is fastest. Each is summed in the order of dot_products().
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
/// columns. The rows after these are fetched in the order of memory, if that takes at most eight requests at
/// a time: sixteen rows of fp32 lose more to them than they gain.
template <int Rows, int Steps, class R>
TYCHO_SIMD void add_steps(const float* left, int64_t depth, const R* right, int64_t right_step,
                          int64_t columns, float* sums) {
  constexpr int64_t kLine = 64 / int64_t{sizeof(R)}, kElements = Steps * kLanes;
  const R* const next = right + Steps * right_step;
  for_lanes(columns, [&](int64_t i, auto lanes) {
    if constexpr (Steps > 1 && kElements <= 8 * kLine)
      for (int64_t at = 0; at < kElements; at += kLine) __builtin_prefetch(next + i * Steps + at, 0, 2);
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
    write_tile(tile, kTaskColumns, Rows, columns, result, 0, first, shape.columns);
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
      write_tile(tile, kTaskColumns, Rows, columns, result, 0, first, shape.columns);
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

}  // namespace

bool few_rows_matmul(MatmulShape shape, const MatmulOperand& left, const MatmulOperand& right,
                     const MatmulResult& result) {
  if (shape.rows > kFewRows || left.depth_step != 1) return false;
  if (right.depth_step != 1 && right.row_step != 1) return false;
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
  return true;
}

}  // namespace tycho::TYCHO_ISA
