// The token table on the CPU.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/parallel.h"

namespace tycho::TYCHO_ISA {
namespace {

template <class T>
void backward(RowsShape shape, const int32_t* tokens, const T* dy, float* dtable) {
  // A block owns columns of every token and adds rows in order: no locks, and the same sums for any number of
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

}  // namespace

void embedding(RowsShape shape, Dtype dtype, const int32_t* tokens, const void* table, void* y, Stream) {
  const int64_t row_bytes = shape.dim * (dtype == Dtype::kFp32 ? sizeof(float) : sizeof(Bf16));
  for_row_blocks(shape.rows, shape.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row)
      __builtin_memcpy(static_cast<char*>(y) + row * row_bytes,
                       static_cast<const char*>(table) + tokens[row] * row_bytes, row_bytes);
  });
}

int64_t embedding_backward_workspace(RowsShape, int64_t) { return 0; }

void embedding_backward(RowsShape shape, Dtype dtype, const int32_t* tokens, int64_t, const void* dy,
                        float* dtable, void*, Stream) {
  if (dtype == Dtype::kFp32)
    backward(shape, tokens, static_cast<const float*>(dy), dtable);
  else
    backward(shape, tokens, static_cast<const Bf16*>(dy), dtable);
}

}  // namespace tycho::TYCHO_ISA
