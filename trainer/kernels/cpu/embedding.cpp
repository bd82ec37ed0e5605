// The tables of tokens and positions on the CPU.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/parallel.h"

namespace tycho::TYCHO_ISA {
namespace {

template <class T>
void backward(RowsShape shape, const int32_t* tokens, const T* dy, float* dtable) {
  // A block owns columns of every token and adds rows in order: no locks, and equal sums for any number of
  // threads.
  constexpr int64_t kColumns = 64;
  for_blocks(ceil_div(shape.dim, kColumns), shape.rows * shape.dim, [&](int64_t block) {
    const int64_t first = block * kColumns, count = smaller(kColumns, shape.dim - first);
    for (int64_t row = 0; row < shape.rows; ++row) {
      const T* from = dy + row * shape.dim + first;
      float* to = dtable + tokens[row] * shape.dim + first;
      for_lanes(count, [&](int64_t i, auto lanes) {
        store(to + i, load(to + i, lanes) + load(from + i, lanes), lanes);
      });
    }
  });
}

template <class T>
void add_positions(RowsShape shape, const int32_t* tokens, const T* table, const PositionRows& positions,
                   T* y) {
  const T* position_table = static_cast<const T*>(positions.table);
  for_row_blocks(shape.rows, shape.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const T* token = table + tokens[row] * shape.dim;
      const T* position = position_table + (positions.first_position + row % positions.seq) * shape.dim;
      T* out = y + row * shape.dim;
      for_lanes(shape.dim, [&](int64_t i, auto lanes) {
        store(out + i, load(token + i, lanes) + load(position + i, lanes), lanes);
      });
    }
  });
}

template <class T>
void sum_positions(RowsShape shape, int64_t seq, const T* dy, float* dtable, bool add) {
  for_row_blocks(seq, shape.dim * ceil_div(shape.rows, larger(1, seq)), [&](int64_t first, int64_t count) {
    for (int64_t position = first; position < first + count; ++position) {
      float* out = dtable + position * shape.dim;
      for_lanes(shape.dim, [&](int64_t i, auto lanes) {
        Vec sum = add ? load(out + i, lanes) : Vec{};
        for (int64_t row = position; row < shape.rows; row += seq)
          sum += load(dy + row * shape.dim + i, lanes);
        store(out + i, sum, lanes);
      });
    }
  });
}

void copy_rows(RowsShape shape, int64_t row_bytes, const int32_t* tokens, const void* table, void* y) {
  for_row_blocks(shape.rows, shape.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row)
      __builtin_memcpy(static_cast<char*>(y) + row * row_bytes,
                       static_cast<const char*>(table) + tokens[row] * row_bytes, row_bytes);
  });
}

}  // namespace

void embedding(RowsShape shape, Dtype dtype, const int32_t* tokens, const void* table, PositionRows positions,
               void* y, Stream) {
  if (!positions.table)
    copy_rows(shape, shape.dim * (dtype == Dtype::kFp32 ? sizeof(float) : sizeof(Bf16)), tokens, table, y);
  else if (dtype == Dtype::kFp32)
    add_positions(shape, tokens, static_cast<const float*>(table), positions, static_cast<float*>(y));
  else
    add_positions(shape, tokens, static_cast<const Bf16*>(table), positions, static_cast<Bf16*>(y));
}

int64_t embedding_backward_workspace(RowsShape, int64_t) { return 0; }

void embedding_backward(RowsShape shape, Dtype dtype, const int32_t* tokens, int64_t, const void* dy,
                        float* dtable, void*, Stream) {
  if (dtype == Dtype::kFp32)
    backward(shape, tokens, static_cast<const float*>(dy), dtable);
  else
    backward(shape, tokens, static_cast<const Bf16*>(dy), dtable);
}

void position_gradient(RowsShape shape, Dtype dtype, int64_t seq, const void* dy, float* dtable, bool add,
                       Stream) {
  if (dtype == Dtype::kFp32)
    sum_positions(shape, seq, static_cast<const float*>(dy), dtable, add);
  else
    sum_positions(shape, seq, static_cast<const Bf16*>(dy), dtable, add);
}

}  // namespace tycho::TYCHO_ISA
