// The bias of a linear layer on the CPU.
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/partials.h"

namespace tycho::TYCHO_ISA {
namespace {

template <class T>
void forward(RowsShape shape, const void* bias, const void* x, void* y) {
  const T* added = static_cast<const T*>(bias);
  for_row_blocks(shape.rows, shape.dim, [&](int64_t first, int64_t count) {
    for (int64_t row = first; row < first + count; ++row) {
      const T* in = static_cast<const T*>(x) + row * shape.dim;
      T* out = static_cast<T*>(y) + row * shape.dim;
      for_lanes(shape.dim, [&](int64_t i, auto lanes) {
        store(out + i, load(in + i, lanes) + load(added + i, lanes), lanes);
      });
    }
  });
}

template <class T>
void backward(RowsShape shape, const void* dy, float* partials) {
  for_partials(shape.rows, shape.dim, [&](int64_t partial, int64_t first, int64_t end) {
    float* sums = partials + partial * shape.dim;
    __builtin_memset(sums, 0, shape.dim * sizeof(float));
    for (int64_t row = first; row < end; ++row) {
      const T* from = static_cast<const T*>(dy) + row * shape.dim;
      for_lanes(shape.dim, [&](int64_t i, auto lanes) {
        store(sums + i, load(sums + i, lanes) + load(from + i, lanes), lanes);
      });
    }
  });
}

}  // namespace

void add_bias(RowsShape shape, Dtype dtype, const void* bias, const void* x, void* y, Stream) {
  const auto run = dtype == Dtype::kFp32 ? &forward<float> : &forward<Bf16>;
  run(shape, bias, x, y);
}

int64_t bias_gradient_workspace(RowsShape shape) { return num_partials(shape.rows) * shape.dim; }

void bias_gradient(RowsShape shape, Dtype dtype, const void* dy, float* dbias, bool add, float* workspace,
                   Stream) {
  const auto run = dtype == Dtype::kFp32 ? &backward<float> : &backward<Bf16>;
  run(shape, dy, workspace);
  add_partials(shape.dim, workspace, num_partials(shape.rows), dbias, add);
}

}  // namespace tycho::TYCHO_ISA
