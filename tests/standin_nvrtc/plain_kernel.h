// Included before a program's text: its kernel is a function that runs once for each thread of the grid.
#pragma once
#include <math.h>

#define __global__
#define __device__
#define __fmaf_rn(a, b, c) __builtin_fmaf(a, b, c)
#define __float_as_int(x) __builtin_bit_cast(int, x)
#define __float_as_uint(x) __builtin_bit_cast(unsigned, x)
#define __int_as_float(bits) __builtin_bit_cast(float, bits)
#define __uint_as_float(bits) __builtin_bit_cast(float, bits)

namespace standin {

struct Index {
  unsigned x = 0;
};

}  // namespace standin

static thread_local standin::Index threadIdx, blockIdx, blockDim, gridDim;

namespace standin {

template <class Program>
void run_threads(void (*kernel)(Program), const void* arguments, unsigned blocks, unsigned threads) {
  blockDim.x = threads, gridDim.x = blocks;
  for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
    for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x)
      kernel(*static_cast<const Program*>(arguments));
}

}  // namespace standin

#define STANDIN_RUN ::standin::run_threads
