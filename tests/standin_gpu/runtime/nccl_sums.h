// What the stand-in's NCCL adds, in the order of ranks.
#pragma once
#include <nccl.h>

#include <cstdint>
#include <cstring>

namespace standin {

constexpr size_t kSlotBytes = 1 << 20;
/// Of a rank: the part of its tensor that all add now.
using Slot = char[kSlotBytes];

inline float from_bf16(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}
inline uint16_t to_bf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if (value != value) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <class T>
inline void add_all(const Slot* slots, int num_ranks, void* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    T sum = 0;
    for (int r = 0; r < num_ranks; ++r) sum += reinterpret_cast<const T*>(slots[r])[i];
    static_cast<T*>(to)[i] = sum;
  }
}

inline void add_bf16(const Slot* slots, int num_ranks, void* to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int r = 0; r < num_ranks; ++r) sum += from_bf16(reinterpret_cast<const uint16_t*>(slots[r])[i]);
    static_cast<uint16_t*>(to)[i] = to_bf16(sum);
  }
}

inline size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8: return 1;
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclFloat32: return 4;
    default: return 8;
  }
}

inline void add(const Slot* slots, int num_ranks, void* to, size_t count, ncclDataType_t type) {
  switch (type) {
    case ncclFloat32: return add_all<float>(slots, num_ranks, to, count);
    case ncclFloat64: return add_all<double>(slots, num_ranks, to, count);
    case ncclInt32: return add_all<int32_t>(slots, num_ranks, to, count);
    case ncclInt64: return add_all<int64_t>(slots, num_ranks, to, count);
    case ncclBfloat16: return add_bf16(slots, num_ranks, to, count);
    default: return add_all<uint8_t>(slots, num_ranks, to, count);
  }
}

}  // namespace standin
