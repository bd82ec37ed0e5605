// Code shared by the CUDA kernels: 16-byte packs, fp32 arithmetic on either dtype, sums over warps in a fixed
// order.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstring>

#include "trainer/kernels/twins/kernel_table.h"

namespace tycho::cuda {

inline constexpr int kWarp = 32;

/// `width` consecutive elements, moved by one instruction up to 16 bytes.
template <class T, int width>
struct alignas(sizeof(T) * width < 16 ? sizeof(T) * width : 16) Pack {
  T at[width];
};

/// Number of elements in 16 bytes.
template <class T>
inline constexpr int kFullWidth = 16 / sizeof(T);

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
template <class T>
__device__ inline T from_float(float x) {
  if constexpr (sizeof(T) == sizeof(float))
    return x;
  else
    return __float2bfloat16_rn(x);
}

template <int width, class T>
__device__ inline Pack<float, width> load(const T* p) {
  const auto raw = *reinterpret_cast<const Pack<T, width>*>(p);
  Pack<float, width> x;
#pragma unroll
  for (int i = 0; i < width; ++i) x.at[i] = to_float(raw.at[i]);
  return x;
}
/// Stores to global memory. The compiler splits a plain store of computed elements into up to eight; it
/// leaves
/// __stwb whole.
template <int width, class T>
__device__ inline void store(T* p, const Pack<float, width>& x) {
  Pack<T, width> raw;
#pragma unroll
  for (int i = 0; i < width; ++i) raw.at[i] = from_float<T>(x.at[i]);
  if constexpr (sizeof raw % sizeof(uint4) == 0) {
    constexpr int kWords = sizeof raw / sizeof(uint4);
    uint4 words[kWords];
    memcpy(words, &raw, sizeof raw);
#pragma unroll
    for (int i = 0; i < kWords; ++i) __stwb(reinterpret_cast<uint4*>(p) + i, words[i]);
  } else {
    *reinterpret_cast<Pack<T, width>*>(p) = raw;
  }
}
/// Stores to memory of the block.
template <int width>
__device__ inline void store_shared(float* p, const Pack<float, width>& x) {
  *reinterpret_cast<Pack<float, width>*>(p) = x;
}

/// Returns the sum over the warp to every lane; the order of additions is fixed.
template <class T>
__device__ inline T warp_sum(T x) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) x += __shfl_xor_sync(0xffffffffu, x, distance);
  return x;
}

/// Returns the sum over the block to every thread. Requires that blockDim.x is a multiple of 32. May be
/// called again at once.
template <class T>
__device__ inline T block_sum(T x) {
  __shared__ T sums[kWarp];
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
  x = warp_sum(x);
  __syncthreads();
  if (lane == 0) sums[warp] = x;
  __syncthreads();
  return warp_sum(lane < warps ? sums[lane] : T(0));
}

/// Returns the sum over a line: over the block if it has one row of threads, over a warp if each warp has its
/// own line.
template <class T>
__device__ inline T line_sum(T x) {
  return blockDim.y > 1 ? warp_sum(x) : block_sum(x);
}

__host__ __device__ constexpr int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Returns a multiple of 32 threads, enough for `wanted` up to `most`.
inline int threads_for(int64_t wanted, int most) {
  const int64_t rounded = ceil_div(wanted, kWarp) * kWarp;
  return static_cast<int>(rounded < kWarp ? kWarp : rounded < most ? rounded : most);
}

inline cudaStream_t native(Stream stream) { return static_cast<cudaStream_t>(stream); }

/// True if rows of `dim` elements that start at each pointer can be moved in packs of 16 bytes.
template <class T, class... Pointers>
bool packs_fit(int64_t dim, const Pointers*... pointers) {
  return dim % kFullWidth<T> == 0 && ((reinterpret_cast<uintptr_t>(pointers) % 16 == 0) && ...);
}

template <int value>
struct Width {
  static constexpr int count = value;
};

/// Calls launch(Width<n>) with full packs or single elements.
template <class T, class Launch>
void with_width(bool full, const Launch& launch) {
  if (full)
    launch(Width<kFullWidth<T>>{});
  else
    launch(Width<1>{});
}

/// Calls body with a null pointer of the dtype's C++ type.
template <class Body>
void with_type(Dtype dtype, const Body& body) {
  if (dtype == Dtype::kFp32)
    body(static_cast<float*>(nullptr));
  else
    body(static_cast<__nv_bfloat16*>(nullptr));
}

}  // namespace tycho::cuda
