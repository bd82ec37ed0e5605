// How an optimizer kernel reads and writes the weights that it updates.
#pragma once
#include "trainer/kernels/cpu/simd.h"
#include "trainer/kernels/kernel_table.h"
#include "trainer/kernels/optimizer/rounding_noise.h"
#include "trainer/kernels/optimizer/weight_form.h"

namespace tycho::TYCHO_ISA {

template <WeightForm form>
struct Weights {
  OptimizedWeights weights;

  template <class Lanes>
  inline __attribute__((always_inline)) Vec read(int64_t i, Lanes lanes) const {
    if constexpr (form == WeightForm::kFp32)
      return load(static_cast<const float*>(weights.params) + i, lanes);
    if constexpr (form == WeightForm::kMixed) return load(weights.master + i, lanes);
    return load(static_cast<const Bf16*>(weights.params) + i, lanes);
  }

  template <class Lanes>
  inline __attribute__((always_inline)) void write(int64_t i, Vec x, Lanes lanes) const {
    if constexpr (form == WeightForm::kFp32) {
      store(static_cast<float*>(weights.params) + i, x, lanes);
    } else if constexpr (form == WeightForm::kStochasticBf16) {
      const Half half = rounded(i, x);
      __builtin_memcpy(static_cast<Bf16*>(weights.params) + i, &half, lanes.count * sizeof(Bf16));
    } else {
      if constexpr (form == WeightForm::kMixed) store(weights.master + i, x, lanes);
      store(static_cast<Bf16*>(weights.params) + i, x, lanes);
    }
  }

 private:
  // Adding 16 random bits carries into the upper half as often as the lower half is large. Infinity stays,
  // NaN too. i is a multiple of kLanes.
  inline __attribute__((always_inline)) Half rounded(int64_t i, Vec x) const {
    constexpr int kBlocks = kLanes < kNoiseElements ? 1 : kLanes / kNoiseElements;
    uint32_t words[4 * kBlocks];
    for (int block = 0; block < kBlocks; ++block)
      rounding_noise(weights.key, static_cast<uint64_t>(i / kNoiseElements + block), weights.step,
                     words + 4 * block);
    Half noise;  // low halves first: as they lie in memory
    __builtin_memcpy(&noise, reinterpret_cast<const uint16_t*>(words) + i % kNoiseElements, sizeof noise);
    const Bits bits = (Bits)x;
    return to_16_bits((x == x ? bits + to_32_bits(noise) : (bits | 0x400000u)) >> 16);
  }
};

}  // namespace tycho::TYCHO_ISA
