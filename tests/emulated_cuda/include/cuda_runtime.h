// CUDA's keywords, types and functions for kernels that run on the CPU: what trainer/kernels/cuda uses, and
// no more. translate.cmake rewrites what a compiler of C++ cannot read: launches and shared memory.
#pragma once
#include <cuda_runtime_api.h>
#include <math.h>

#include <cstring>

#include "tests/emulated_cuda/emulator.h"

#define __CUDACC__ 1
#define __global__
#define __device__
#define __host__
#define __align__(bytes) alignas(bytes)

#define threadIdx (::emulated::place.thread)
#define blockIdx (::emulated::place.block)
#define blockDim (::emulated::place.block_size)
#define gridDim (::emulated::place.grid_size)

#define __syncthreads() ::emulated::sync_threads(__LINE__)
#define __syncwarp(...) ::emulated::sync_warp(__LINE__ __VA_OPT__(, ) __VA_ARGS__)
#define __shfl_sync(mask, value, lane) \
  ::emulated::shuffle(__LINE__, mask, value, [&](unsigned) { return static_cast<unsigned>(lane); })
#define __shfl_xor_sync(mask, value, distance) \
  ::emulated::shuffle(__LINE__, mask, value, [&](unsigned self) { return self ^ unsigned(distance); })
#define __shfl_down_sync(mask, value, distance)                               \
  ::emulated::shuffle(__LINE__, mask, value, [&](unsigned self) {             \
    return self + unsigned(distance) < 32 ? self + unsigned(distance) : self; \
  })
#define __ballot_sync(mask, vote) ::emulated::ballot(__LINE__, mask, vote)

// Names that newer C libraries declare themselves.
#define rsqrtf(x) ::emulated::reciprocal_root(x)
#define __expf(x) ::expf(x)
#define __fadd_rn(a, b) ((a) + (b))
#define __fdiv_rn(a, b) ((a) / (b))
#define __fdividef(a, b) ::emulated::fast_quotient(a, b)
#define __launch_bounds__(...)
#define __stwb(address, value) (*(address) = (value))

struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

inline unsigned __float_as_uint(float x) {
  unsigned bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline float __uint_as_float(unsigned bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
