// SwiGLU on the GPU: a pack per thread, one pass.
#include "trainer/kernels/cuda/common.cuh"
#include "trainer/kernels/cuda/kernels.h"

namespace tycho::cuda {
namespace {

constexpr int kThreads = 128;

__device__ float sigmoid(float x) { return 1.0f / (1.0f + __expf(-x)); }

template <int width, class T>
__global__ void forward(int64_t dim, const T* gate_up, T* y) {
  const int64_t row = blockIdx.x, i = (static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x) * width;
  if (i >= dim) return;
  const T* gate = gate_up + row * 2 * dim + i;
  const auto g = load<width>(gate);
  auto u = load<width>(gate + dim);
#pragma unroll
  for (int k = 0; k < width; ++k) u.at[k] *= g.at[k] * sigmoid(g.at[k]);
  store<width>(y + row * dim + i, u);
}

/// silu(g) = g s, s = sigmoid(g); silu'(g) = s (1 + g (1 - s)).
template <int width, class T>
__global__ void backward(int64_t dim, const T* gate_up, const T* dy, T* dgate_up, T* y) {
  const int64_t row = blockIdx.x, i = (static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x) * width;
  if (i >= dim) return;
  const int64_t gate = row * 2 * dim + i;
  const auto g = load<width>(gate_up + gate), u = load<width>(gate_up + gate + dim),
             d = load<width>(dy + row * dim + i);
  Pack<float, width> dg, du, out;
#pragma unroll
  for (int k = 0; k < width; ++k) {
    const float s = sigmoid(g.at[k]), silu = g.at[k] * s;
    out.at[k] = silu * u.at[k];
    dg.at[k] = d.at[k] * u.at[k] * (s + silu * (1.0f - s));
    du.at[k] = d.at[k] * silu;
  }
  store<width>(dgate_up + gate, dg);
  store<width>(dgate_up + gate + dim, du);
  store<width>(y + row * dim + i, out);
}

dim3 grid_of(RowsShape shape, int width) { return dim3(shape.rows, ceil_div(shape.dim, kThreads * width)); }

}  // namespace

void swiglu(RowsShape shape, Dtype dtype, const void* gate_up, void* y, Stream stream) {
  if (shape.rows == 0) return;
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    with_width<T>(packs_fit<T>(shape.dim, gate_up, y), [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      forward<kWidth><<<grid_of(shape, kWidth), kThreads, 0, native(stream)>>>(
          shape.dim, static_cast<const T*>(gate_up), static_cast<T*>(y));
    });
  });
  check_launch("swiglu");
}

void swiglu_backward(RowsShape shape, Dtype dtype, const void* gate_up, const void* dy, void* dgate_up,
                     void* y, Stream stream) {
  if (shape.rows == 0) return;
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    with_width<T>(packs_fit<T>(shape.dim, gate_up, dy, dgate_up, y), [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      backward<kWidth><<<grid_of(shape, kWidth), kThreads, 0, native(stream)>>>(
          shape.dim, static_cast<const T*>(gate_up), static_cast<const T*>(dy), static_cast<T*>(dgate_up),
          static_cast<T*>(y));
    });
  });
  check_launch("swiglu_backward");
}

}  // namespace tycho::cuda
