// Magnitudes and codes of packs, and the casts of a row by the kernel that computes it, on the GPU.
#pragma once
#include "trainer/kernels/cuda/common.cuh"
#include "trainer/kernels/twins/fp8_code.h"

namespace tycho::cuda {

template <int width>
struct alignas(width) CodePack {
  uint8_t at[width];
};

__device__ inline uint32_t larger_of(uint32_t a, uint32_t b) { return a > b ? a : b; }
/// Bits of a magnitude: their order is that of the numbers, NaN above all.
__device__ inline uint32_t magnitude(float x) { return __float_as_uint(x) & kFp32Magnitude; }

/// Returns the maximum over the warp to every lane.
__device__ inline uint32_t warp_max(uint32_t x) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2)
    x = larger_of(x, __shfl_xor_sync(0xffffffffu, x, distance));
  return x;
}
/// Returns the maximum over the block to every thread.
__device__ inline uint32_t block_max(uint32_t x) {
  __shared__ uint32_t most[kWarp];
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, warps = blockDim.x / kWarp;
  x = warp_max(x);
  if (lane == 0) most[warp] = x;
  __syncthreads();
  for (int other = 0; other < warps; ++other) x = larger_of(x, most[other]);
  return x;
}
template <int width>
__device__ inline uint32_t largest_of(const Pack<float, width>& x) {
  uint32_t most = 0;
#pragma unroll
  for (int k = 0; k < width; ++k) most = larger_of(most, magnitude(x.at[k]));
  return most;
}

template <Fp8Format format, int width>
__device__ inline void store_codes(const Pack<float, width>& x, float scale, uint8_t* codes) {
  CodePack<width> pack;
#pragma unroll
  for (int k = 0; k < width; ++k)
    pack.at[k] = static_cast<uint8_t>(fp8_code<format, uint32_t>(x.at[k] * scale));
  *reinterpret_cast<CodePack<width>*>(codes) = pack;
}

/// Returns x rounded to bf16.
template <int width>
__device__ inline Pack<float, width> as_bf16(Pack<float, width> x) {
#pragma unroll
  for (int k = 0; k < width; ++k) x.at[k] = to_float(from_float<__nv_bfloat16>(x.at[k]));
  return x;
}

/// Makes the casts of a row of blockDim.x threads, given its largest magnitude. Codes are computed from the
/// row's elements once more: row_at(i), rounded to bf16.
template <int width, class RowAt>
__device__ inline void cast_row_at(int64_t dim, int64_t row, uint32_t most, const CastRows& casts,
                                   const RowAt& row_at) {
  if (casts.amax_R && threadIdx.x == 0) casts.amax_R[row] = __uint_as_float(most);
  if (!casts.codes) return;
  const float scale = fp8_scale({Fp8Format::kE4m3, casts.power_of_two}, __uint_as_float(most));
  if (threadIdx.x == 0) casts.factors_R[row] = 1.0f / scale;
  for (int64_t i = threadIdx.x * width; i < dim; i += blockDim.x * width)
    store_codes<Fp8Format::kE4m3>(row_at(i), scale, casts.codes + row * dim + i);
}

}  // namespace tycho::cuda
