// Activations on the GPU, alone, after a bias and gated: a pack per thread, one pass each.
#include "trainer/kernels/cuda/common.cuh"
#include "trainer/kernels/cuda/fp8_codes.cuh"
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/cuda/over_elements.cuh"
#include "trainer/kernels/cuda/partials.cuh"

namespace tycho::cuda {
namespace {

struct Curve {
  float value, slope;
};

struct Gelu {
  __device__ static Curve at(float x) {
    const float cdf = 0.5f + 0.5f * erff(x * 0.707106781f);
    return {x * cdf, cdf + x * 0.398942280f * __expf(x * x * -0.5f)};
  }
};
/// Returns x sigmoid(g), whose slope is s + x s (1 - s) g'.
__device__ inline Curve through_sigmoid(float x, float g, float g_slope) {
  const float s = __fdividef(1.0f, 1.0f + __expf(-g)), value = x * s;
  return {value, s + value * (1.0f - s) * g_slope};
}
/// (1 + tanh(u)) / 2 is sigmoid(2 u), here with u = sqrt(2 / pi) (x + 0.044715 x³).
struct GeluTanh {
  __device__ static Curve at(float x) {
    constexpr float kScale = 1.59576912f, kCubic = 0.0713548163f;
    const float square = x * x;
    return through_sigmoid(x, x * (square * kCubic + kScale), square * (3.0f * kCubic) + kScale);
  }
};
struct QuickGelu {
  __device__ static Curve at(float x) { return through_sigmoid(x, x * 1.702f, 1.702f); }
};
struct Silu {
  __device__ static Curve at(float x) { return through_sigmoid(x, x, 1.0f); }
};
struct Relu {
  __device__ static Curve at(float x) { return {x < 0 ? 0.0f : x, x > 0 ? 1.0f : 0.0f}; }
};

/// Calls body(null of the dtype's type, the curve of that kind).
template <class Body>
void with_type_and_curve(Dtype dtype, Activation kind, const Body& body) {
  with_type(dtype, [&](auto* type) {
    switch (kind) {
      case Activation::kGelu: return body(type, Gelu{});
      case Activation::kGeluTanh: return body(type, GeluTanh{});
      case Activation::kQuickGelu: return body(type, QuickGelu{});
      case Activation::kRelu: return body(type, Relu{});
      case Activation::kSilu: return body(type, Silu{});
    }
  });
}

template <class F, class T>
struct Forward {
  const T* x;
  T* y;

  template <class W>
  __device__ void operator()(int64_t i, W) const {
    auto value = load<W::count>(x + i);
#pragma unroll
    for (int k = 0; k < W::count; ++k) value.at[k] = F::at(value.at[k]).value;
    store<W::count>(y + i, value);
  }
};

template <class F, class T>
struct Backward {
  const T *x, *dy;
  T *dx, *y;

  template <class W>
  __device__ void operator()(int64_t i, W) const {
    auto value = load<W::count>(x + i), gradient = load<W::count>(dy + i);
#pragma unroll
    for (int k = 0; k < W::count; ++k) {
      const Curve f = F::at(value.at[k]);
      value.at[k] = f.value;
      gradient.at[k] *= f.slope;
    }
    store<W::count>(y + i, value);
    store<W::count>(dx + i, gradient);
  }
};

constexpr int kThreads = 128;

template <class F, int width, class T>
__global__ void bias_forward(int64_t dim, const T* bias, const T* x, T* y) {
  const int64_t row = blockIdx.x, i = (static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x) * width;
  if (i >= dim) return;
  auto z = load<width>(x + row * dim + i);
  const auto added = load<width>(bias + i);
#pragma unroll
  for (int k = 0; k < width; ++k) z.at[k] = F::at(z.at[k] + added.at[k]).value;
  store<width>(y + row * dim + i, z);
}

/// Computes a tile of columns over a run of rows per block, and sums the values written to dx. The bounds
/// leave 64 registers: four blocks on a multiprocessor.
template <class F, int width, class T>
__global__ void __launch_bounds__(kWarp* kSumRows, 4)
    bias_backward(RowsShape shape, const T* bias, const T* x, const T* dy, T* dx, T* y, float* partials) {
  const int64_t column = (static_cast<int64_t>(blockIdx.y) * kWarp + threadIdx.x) * width;
  const int64_t run = ceil_div(shape.rows, gridDim.x), first = blockIdx.x * run;
  const int64_t end = first + run < shape.rows ? first + run : shape.rows;
  Pack<float, width> sum{};
  if (column < shape.dim) {
    const auto added = load<width>(bias + column);
    for (int64_t row = first + threadIdx.y; row < end; row += kSumRows) {
      const int64_t at = row * shape.dim + column;
      auto value = load<width>(x + at), gradient = load<width>(dy + at);
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const Curve f = F::at(value.at[k] + added.at[k]);
        value.at[k] = f.value;
        gradient.at[k] *= f.slope;
        sum.at[k] += gradient.at[k];
      }
      store<width>(y + at, value);
      store<width>(dx + at, gradient);
    }
  }
  store_column_sums<width>(shape.dim, column, sum, partials);
}

template <class F, int width, class T>
__global__ void gated_forward(int64_t dim, const T* gate_up, T* y) {
  const int64_t row = blockIdx.x, i = (static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x) * width;
  if (i >= dim) return;
  const T* gate = gate_up + row * 2 * dim + i;
  const auto g = load<width>(gate);
  auto u = load<width>(gate + dim);
#pragma unroll
  for (int k = 0; k < width; ++k) u.at[k] *= F::at(g.at[k]).value;
  store<width>(y + row * dim + i, u);
}

/// A block per row, which computes the row twice where codes are made: the second time from the cache.
template <class F, int width, bool gated>
__global__ void casts_forward(int64_t dim, const __nv_bfloat16* bias, const __nv_bfloat16* x,
                              __nv_bfloat16* y, CastRows casts) {
  const int64_t row = blockIdx.x;
  x += row * dim * (gated ? 2 : 1);
  const auto row_at = [&](int64_t i) {
    auto z = load<width>(x + i);
    Pack<float, width> more{};
    if (gated || bias) more = load<width>(gated ? x + dim + i : bias + i);
#pragma unroll
    for (int k = 0; k < width; ++k) {
      if (!gated && bias) z.at[k] += more.at[k];  // which would turn -0 into 0
      z.at[k] = F::at(z.at[k]).value;
      if (gated) z.at[k] *= more.at[k];
    }
    return as_bf16(z);
  };
  uint32_t most = 0;
  for (int64_t i = threadIdx.x * width; i < dim; i += blockDim.x * width) {
    const auto value = row_at(i);
    most = larger_of(most, largest_of(value));
    if (y) store<width>(y + row * dim + i, value);
  }
  cast_row_at<width>(dim, row, block_max(most), casts, row_at);
}

template <class F, int width, class T>
__global__ void gated_backward(int64_t dim, const T* gate_up, const T* dy, T* dgate_up, T* y) {
  const int64_t row = blockIdx.x, i = (static_cast<int64_t>(blockIdx.y) * kThreads + threadIdx.x) * width;
  if (i >= dim) return;
  const int64_t gate = row * 2 * dim + i;
  const auto g = load<width>(gate_up + gate), u = load<width>(gate_up + gate + dim),
             d = load<width>(dy + row * dim + i);
  Pack<float, width> dg, du, out;
#pragma unroll
  for (int k = 0; k < width; ++k) {
    const Curve f = F::at(g.at[k]);
    out.at[k] = f.value * u.at[k];
    dg.at[k] = d.at[k] * u.at[k] * f.slope;
    du.at[k] = d.at[k] * f.value;
  }
  store<width>(dgate_up + gate, dg);
  store<width>(dgate_up + gate + dim, du);
  store<width>(y + row * dim + i, out);
}

dim3 grid_of(RowsShape shape, int width) { return dim3(shape.rows, ceil_div(shape.dim, kThreads * width)); }

}  // namespace

void activation(int64_t n, Dtype dtype, Activation kind, const void* x, void* y, Stream stream) {
  if (n == 0) return;
  with_type_and_curve(dtype, kind, [&]<class T, class F>(T*, F) {
    const Forward<F, T> body{static_cast<const T*>(x), static_cast<T*>(y)};
    launch_over_elements<T>(n, packs_fit<T>(n, x, y), body, native(stream));
  });
  check_launch("activation");
}

void activation_backward(int64_t n, Dtype dtype, Activation kind, const void* x, const void* dy, void* dx,
                         void* y, Stream stream) {
  if (n == 0) return;
  with_type_and_curve(dtype, kind, [&]<class T, class F>(T*, F) {
    const Backward<F, T> body{static_cast<const T*>(x), static_cast<const T*>(dy), static_cast<T*>(dx),
                              static_cast<T*>(y)};
    launch_over_elements<T>(n, packs_fit<T>(n, x, dy, dx, y), body, native(stream));
  });
  check_launch("activation_backward");
}

void bias_activation(RowsShape shape, Dtype dtype, Activation kind, const void* bias, const void* x, void* y,
                     Stream stream) {
  if (shape.rows == 0) return;
  with_type_and_curve(dtype, kind, [&]<class T, class F>(T*, F) {
    with_width<T>(packs_fit<T>(shape.dim, bias, x, y), [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      bias_forward<F, kWidth><<<grid_of(shape, kWidth), kThreads, 0, native(stream)>>>(
          shape.dim, static_cast<const T*>(bias), static_cast<const T*>(x), static_cast<T*>(y));
    });
  });
  check_launch("bias_activation");
}

int64_t bias_activation_backward_workspace(RowsShape shape) { return runs_of(shape) * shape.dim; }

void bias_activation_backward(RowsShape shape, Dtype dtype, Activation kind, const void* bias, const void* x,
                              const void* dy, void* dx, void* y, float* dbias, bool add_to_dbias,
                              float* workspace, Stream stream) {
  const int64_t runs = runs_of(shape);
  if (runs > 0)
    with_type_and_curve(dtype, kind, [&]<class T, class F>(T*, F) {
      with_width<T>(packs_fit<T>(shape.dim, bias, x, dy, dx, y, workspace), [&](auto width) {
        constexpr int kWidth = decltype(width)::count;
        const dim3 grid(runs, ceil_div(shape.dim, kWarp * kWidth));
        bias_backward<F, kWidth><<<grid, dim3(kWarp, kSumRows), 0, native(stream)>>>(
            shape, static_cast<const T*>(bias), static_cast<const T*>(x), static_cast<const T*>(dy),
            static_cast<T*>(dx), static_cast<T*>(y), workspace);
      });
    });
  if (dbias) add_partials(shape.dim, runs, workspace, dbias, add_to_dbias, native(stream));
  check_launch("bias_activation_backward");
}

void gated_activation(RowsShape shape, Dtype dtype, Activation kind, const void* gate_up, void* y,
                      Stream stream) {
  if (shape.rows == 0) return;
  with_type_and_curve(dtype, kind, [&]<class T, class F>(T*, F) {
    with_width<T>(packs_fit<T>(shape.dim, gate_up, y), [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      gated_forward<F, kWidth><<<grid_of(shape, kWidth), kThreads, 0, native(stream)>>>(
          shape.dim, static_cast<const T*>(gate_up), static_cast<T*>(y));
    });
  });
  check_launch("gated_activation");
}

void activation_casts(RowsShape shape, Activation kind, bool gated, const void* bias, const void* x, void* y,
                      CastRows casts, Stream stream) {
  if (shape.rows == 0) return;
  using T = __nv_bfloat16;
  with_type_and_curve(Dtype::kBf16, kind, [&]<class Known, class F>(Known*, F) {
    with_width<T>(packs_fit<T>(shape.dim, bias, x, y, casts.codes), [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      const auto kernel = gated ? casts_forward<F, kWidth, true> : casts_forward<F, kWidth, false>;
      kernel<<<shape.rows, threads_for(shape.dim / kWidth, 256), 0, native(stream)>>>(
          shape.dim, static_cast<const T*>(bias), static_cast<const T*>(x), static_cast<T*>(y), casts);
    });
  });
  check_launch("activation_casts");
}

void gated_activation_backward(RowsShape shape, Dtype dtype, Activation kind, const void* gate_up,
                               const void* dy, void* dgate_up, void* y, Stream stream) {
  if (shape.rows == 0) return;
  with_type_and_curve(dtype, kind, [&]<class T, class F>(T*, F) {
    with_width<T>(packs_fit<T>(shape.dim, gate_up, dy, dgate_up, y), [&](auto width) {
      constexpr int kWidth = decltype(width)::count;
      gated_backward<F, kWidth><<<grid_of(shape, kWidth), kThreads, 0, native(stream)>>>(
          shape.dim, static_cast<const T*>(gate_up), static_cast<const T*>(dy), static_cast<T*>(dgate_up),
          static_cast<T*>(y));
    });
  });
  check_launch("gated_activation_backward");
}

}  // namespace tycho::cuda
