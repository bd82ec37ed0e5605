// Temperature tuning on the GPU: a block per row.
#include "trainer/kernels/cuda/common.cuh"
#include "trainer/kernels/cuda/kernels.h"

namespace tycho::cuda {
namespace {

template <int width, class T>
__global__ void scale(int64_t dim, int64_t step, TemperatureRule rule, RowPositions positions, T* x) {
  const int64_t row = blockIdx.x;
  const int64_t position =
      positions.position_N ? positions.position_N[row] : positions.first_position + row % positions.seq;
  const float steps = floorf(__fdiv_rn(static_cast<float>(position + rule.counts_from), rule.floor_scale));
  const float factor = 1.0f + rule.attn_scale * logf(steps + 1.0f);
  for (int64_t i = threadIdx.x * width; i < dim; i += blockDim.x * width) {
    auto value = load<width>(x + row * step + i);
#pragma unroll
    for (float& v : value.at) v *= factor;
    store<width>(x + row * step + i, value);
  }
}

}  // namespace

void temperature(RowsShape rows, int64_t step, Dtype dtype, TemperatureRule rule, RowPositions positions,
                 void* x, Stream stream) {
  if (rows.rows == 0 || rows.dim == 0) return;
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const bool full = packs_fit<T>(rows.dim, x) && step % kFullWidth<T> == 0;
    with_width<T>(full, [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      scale<kWidth><<<rows.rows, threads_for(rows.dim / kWidth, 256), 0, native(stream)>>>(
          rows.dim, step, rule, positions, static_cast<T*>(x));
    });
  });
  check_launch("temperature");
}

}  // namespace tycho::cuda
