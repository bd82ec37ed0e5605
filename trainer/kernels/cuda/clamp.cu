// Bounds on every element, on the GPU.
#include "trainer/kernels/cuda/common.cuh"
#include "trainer/kernels/cuda/kernels.h"
#include "trainer/kernels/cuda/over_elements.cuh"

namespace tycho::cuda {
namespace {

template <class T>
struct Forward {
  float limit;
  const T* x;
  T* y;

  template <class W>
  __device__ void operator()(int64_t i, W) const {
    auto value = load<W::count>(x + i);
#pragma unroll
    for (float& v : value.at) v = v > limit ? limit : v < -limit ? -limit : v;  // NaN stays
    store<W::count>(y + i, value);
  }
};

template <class T>
struct Backward {
  float limit;
  const T *x, *dy;
  T* dx;

  template <class W>
  __device__ void operator()(int64_t i, W) const {
    const auto value = load<W::count>(x + i);
    auto gradient = load<W::count>(dy + i);
#pragma unroll
    for (int k = 0; k < W::count; ++k)
      if (!(fabsf(value.at[k]) <= limit)) gradient.at[k] = 0;
    store<W::count>(dx + i, gradient);
  }
};

}  // namespace

void clamp(int64_t n, Dtype dtype, float limit, const void* x, void* y, Stream stream) {
  if (n == 0) return;
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const Forward<T> body{limit, static_cast<const T*>(x), static_cast<T*>(y)};
    launch_over_elements<T>(n, packs_fit<T>(n, x, y), body, native(stream));
  });
  check_launch("clamp");
}

void clamp_backward(int64_t n, Dtype dtype, float limit, const void* x, const void* dy, void* dx,
                    Stream stream) {
  if (n == 0) return;
  with_type(dtype, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const Backward<T> body{limit, static_cast<const T*>(x), static_cast<const T*>(dy), static_cast<T*>(dx)};
    launch_over_elements<T>(n, packs_fit<T>(n, x, dy, dx), body, native(stream));
  });
  check_launch("clamp_backward");
}

}  // namespace tycho::cuda
