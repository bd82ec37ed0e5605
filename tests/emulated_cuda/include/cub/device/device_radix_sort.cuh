// CUB's sort of pairs, done by the C++ library: stable, by the bits of the key that are asked for.
#pragma once
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/emulated_cuda/emulator.h"
#include "tests/emulated_cuda/memory.h"

namespace cub {

struct DeviceRadixSort {
  static cudaError_t SortPairs(void* storage, size_t& storage_bytes, const int32_t* keys,
                               int32_t* sorted_keys, const int32_t* values, int32_t* sorted_values, int n,
                               int first_bit, int end_bit, cudaStream_t = nullptr) {
    const size_t wanted = 256 + 8 * static_cast<size_t>(n);
    if (emulated::faults.sort_to_fail > 0 && --emulated::faults.sort_to_fail == 0)
      return cudaErrorInvalidValue;
    if (storage == nullptr) return storage_bytes = wanted, cudaSuccess;
    if (storage_bytes < wanted || first_bit < 0 || end_bit > 32 || first_bit >= end_bit)
      return cudaErrorInvalidValue;
    std::memset(storage, 0xff, storage_bytes);  // as the real one, it writes there
    const uint64_t bits = (uint64_t{1} << end_bit) - (uint64_t{1} << first_bit);
    std::vector<int32_t> order(static_cast<size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return (static_cast<uint32_t>(keys[a]) & bits) < (static_cast<uint32_t>(keys[b]) & bits);
    });
    for (int i = 0; i < n; ++i) {
      sorted_keys[i] = keys[order[static_cast<size_t>(i)]];
      sorted_values[i] = values[order[static_cast<size_t>(i)]];
    }
    for (const void* read : {keys, values}) emulated::note_touched(read, 4 * static_cast<size_t>(n), false);
    for (const void* written : {sorted_keys, sorted_values})
      emulated::note_touched(written, 4 * static_cast<size_t>(n), true);
    return cudaSuccess;
  }
};

}  // namespace cub
