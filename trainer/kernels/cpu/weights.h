// How an optimizer kernel reads and writes the weights that it updates.
#pragma once
#include "trainer/kernels/cpu/simd.h"
#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/kernels/twins/rounding_noise.h"
#include "trainer/kernels/twins/weight_form.h"

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
      const Half half = rounded(i, x, lanes.count);
      __builtin_memcpy(static_cast<Bf16*>(weights.params) + i, &half, lanes.count * sizeof(Bf16));
    } else {
      if constexpr (form == WeightForm::kMixed) store(weights.master + i, x, lanes);
      store(static_cast<Bf16*>(weights.params) + i, x, lanes);
    }
  }

 private:
  // Adding 16 random bits carries into the upper half with a probability proportional to the lower half.
  // Infinity and NaN stay unchanged.
  inline __attribute__((always_inline)) Half rounded(int64_t i, Vec x, int count) const {
    const int64_t first = whole_element(weights.place, i);
    const bool neighbours = whole_element(weights.place, i + count - 1) - first == count - 1;
    uint16_t each[kLanes];
    if (!neighbours) noise_each(i, count, each);
    Half noise;
    if (neighbours)
      noise = noise_from(first);
    else
      __builtin_memcpy(&noise, each, sizeof noise);
    const Bits bits = (Bits)x;
    return to_16_bits((x == x ? bits + to_32_bits(noise) : (bits | 0x400000u)) >> 16);
  }

  // Returns the noise of the parameter's elements from `first` on. Low halves come first, as in memory.
  inline __attribute__((always_inline)) Half noise_from(int64_t first) const {
    constexpr int kMostBlocks = (kLanes + 2 * kNoiseElements - 2) / kNoiseElements;
    uint32_t words[4 * kMostBlocks];
    const int64_t offset = first % kNoiseElements;
    for (int block = 0; block * kNoiseElements < offset + kLanes; ++block)
      rounding_noise(weights.key, static_cast<uint64_t>(first / kNoiseElements + block), weights.step,
                     words + 4 * block);
    Half noise;
    __builtin_memcpy(&noise, reinterpret_cast<const uint16_t*>(words) + offset, sizeof noise);
    return noise;
  }

  // Handles elements across the end of a row of a part.
  __attribute__((noinline)) void noise_each(int64_t i, int count, uint16_t* noise) const {
    for (int lane = 0; lane < kLanes; ++lane) noise[lane] = 0;
    for (int lane = 0; lane < count; ++lane) {
      uint32_t words[4];
      const int64_t e = whole_element(weights.place, i + lane);
      rounding_noise(weights.key, static_cast<uint64_t>(e / kNoiseElements), weights.step, words);
      noise[lane] = static_cast<uint16_t>(noise_of(words, e % kNoiseElements));
    }
  }
};

}  // namespace tycho::TYCHO_ISA
