// Matrix products on the CPU: both operands are laid out as fp32 strips, then tiles of the result are taken
// by threads one by one.                                              (Goto & van de Geijn 2008; BLIS, Van
// Zee 2015)
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/matmul/direct_matmul.h"
#include "trainer/kernels/cpu/matmul/direct_operands.h"
#include "trainer/kernels/cpu/matmul/few_rows_matmul.h"
#include "trainer/kernels/cpu/matmul/tile_product.h"
#include "trainer/kernels/cpu/parallel.h"

namespace tycho::TYCHO_ISA {
namespace {

// A task's operands fit the L2 cache, a strip of the right one the L1; a block's strips fit 24 MiB.
constexpr int64_t kTaskRows = 96, kTaskColumns = 12 * kTileColumns, kTaskDepth = 256;
constexpr int64_t kBlockRows = 16 * kTaskRows, kBlockColumns = 1536, kStripFloats = int64_t{6} << 20;
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
                                            NextPieces{reinterpret_cast<const char*>(b), kPieceBytes});
        else
          product_of_rows<kTileRows, true>(a, b, kTileColumns, depth, c, kTaskColumns,
                                           NextPieces{reinterpret_cast<const char*>(b), kPieceBytes});
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
    write_tile(tile, kTaskColumns, rows, columns, sums.result, left.first_row + row, right.first_row + column,
               sums.columns);
  else
    write_tile(tile, kTaskColumns, rows, columns, {partial, Dtype::kFp32, nullptr}, 0, 0, kBlockColumns);
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

}  // namespace

void matmul(MatmulShape shape, MatmulOperand left, MatmulOperand right, MatmulResult result, Stream) {
  if (few_rows_matmul(shape, left, right, result)) return;
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
