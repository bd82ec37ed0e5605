// How an optimizer kernel reads and writes the weights that it updates, on the GPU.
#pragma once
#include "trainer/kernels/cuda/over_elements.cuh"
#include "trainer/kernels/twins/rounding_noise.h"
#include "trainer/kernels/twins/weight_form.h"

namespace tycho::cuda {

/// Returns the upper half of x plus 16 random bits; infinity and NaN stay unchanged.
__device__ inline __nv_bfloat16 rounded(float x, uint32_t noise) {
  const uint32_t bits = __float_as_uint(x);
  const uint32_t sum = x == x ? bits + noise : bits | 0x400000u;
  return __ushort_as_bfloat16(static_cast<unsigned short>(sum >> 16));
}

/// Returns noise_of(words, e), by choosing: an index that is known at run time only would move the words to
/// local memory.
__device__ inline uint32_t noise_in_registers(const uint32_t words[4], int e) {
  const uint32_t low = e < 2 ? words[0] : words[1], high = e < 6 ? words[2] : words[3];
  return (e < 4 ? low : high) >> (e % 2 * 16) & 0xffffu;
}

template <WeightForm form>
struct Weights {
  OptimizedWeights weights;

  template <int width>
  __device__ Pack<float, width> read(int64_t i) const {
    if constexpr (form == WeightForm::kFp32)
      return load<width>(static_cast<const float*>(weights.params) + i);
    if constexpr (form == WeightForm::kMixed) return load<width>(weights.master + i);
    return load<width>(static_cast<const __nv_bfloat16*>(weights.params) + i);
  }

  template <int width>
  __device__ void write(int64_t i, const Pack<float, width>& x) const {
    auto* const bf16 = static_cast<__nv_bfloat16*>(weights.params) + i;
    if constexpr (form == WeightForm::kFp32) {
      store<width>(static_cast<float*>(weights.params) + i, x);
    } else if constexpr (form == WeightForm::kStochasticBf16) {
      Pack<__nv_bfloat16, width> raw;
      uint32_t words[4];
      int64_t block = -1;  // block of the words
#pragma unroll
      for (int k = 0; k < width; ++k) {
        const int64_t e = whole_element(weights.place, i + k);
        if (e / kNoiseElements != block) {
          block = e / kNoiseElements;
          rounding_noise(weights.key, static_cast<uint64_t>(block), weights.step, words);
        }
        raw.at[k] = rounded(x.at[k], noise_in_registers(words, static_cast<int>(e % kNoiseElements)));
      }
      *reinterpret_cast<Pack<__nv_bfloat16, width>*>(bf16) = raw;
    } else {
      if constexpr (form == WeightForm::kMixed) store<width>(weights.master + i, x);
      store<width>(bf16, x);
    }
  }
};

inline bool weight_packs_fit(const OptimizedWeights& weights) {
  const uintptr_t wanted = weights.dtype == Dtype::kFp32 ? 16 : 8;  // four elements
  return reinterpret_cast<uintptr_t>(weights.params) % wanted == 0 &&
         reinterpret_cast<uintptr_t>(weights.master) % 16 == 0;
}

}  // namespace tycho::cuda
