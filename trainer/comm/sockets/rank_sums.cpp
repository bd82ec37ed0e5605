// Blocks that fit the L1 cache are summed over all ranks before the next block is read.
#include "trainer/comm/sockets/rank_sums.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

namespace tycho {
namespace {

/// Upper half of the bits of an fp32.
struct Bf16 {
  uint16_t bits;
};

float widen(Bf16 x) {
  const uint32_t bits = static_cast<uint32_t>(x.bits) << 16;
  float wide;
  std::memcpy(&wide, &bits, sizeof wide);
  return wide;
}
template <class T>
T widen(T x) {
  return x;
}

/// Rounds to nearest even; NaN stays NaN.
void narrow(float x, Bf16& out) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  const uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  out.bits = static_cast<uint16_t>(x == x ? rounded : 0x7fc0U);
}
template <class T>
void narrow(T x, T& out) {
  out = x;
}

constexpr int64_t kBlock = 512;

/// Sums n numbers of each row, starting at `begin`.
template <class T, class Sum>
void sum_block(Sum* sum, const void* const* rows, int num_rows, int64_t begin, int64_t n, SumOrder order) {
  if (order == SumOrder::kTree && num_rows % 2 == 0) {
    Sum second[kBlock];
    sum_block<T>(sum, rows, num_rows / 2, begin, n, order);
    sum_block<T>(second, rows + num_rows / 2, num_rows / 2, begin, n, order);
    for (int64_t i = 0; i < n; ++i) sum[i] += second[i];
    return;
  }
  const T* first = static_cast<const T*>(rows[0]) + begin;
  for (int64_t i = 0; i < n; ++i) sum[i] = widen(first[i]);
  for (int r = 1; r < num_rows; ++r) {
    const T* row = static_cast<const T*>(rows[r]) + begin;
    for (int64_t i = 0; i < n; ++i) sum[i] += widen(row[i]);
  }
}

template <class T, class Sum>
void sum_of(T* out, const void* const* rows, int num_rows, int64_t count, SumOrder order) {
  Sum sum[kBlock];
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t n = std::min(kBlock, count - begin);
    sum_block<T>(sum, rows, num_rows, begin, n, order);
    for (int64_t i = 0; i < n; ++i) narrow(sum[i], out[begin + i]);
  }
}

}  // namespace

void sum_rows(SumType type, void* out, const void* const* rows, int num_rows, int64_t count, SumOrder order) {
  switch (type) {
    case SumType::kFp32: return sum_of<float, float>(static_cast<float*>(out), rows, num_rows, count, order);
    case SumType::kFp64:
      return sum_of<double, double>(static_cast<double*>(out), rows, num_rows, count, order);
    case SumType::kBf16: return sum_of<Bf16, float>(static_cast<Bf16*>(out), rows, num_rows, count, order);
    // Unsigned types, because their overflow is defined.
    case SumType::kInt32:
      return sum_of<uint32_t, uint32_t>(static_cast<uint32_t*>(out), rows, num_rows, count, order);
    case SumType::kInt64:
      return sum_of<uint64_t, uint64_t>(static_cast<uint64_t*>(out), rows, num_rows, count, order);
    case SumType::kByte:
      return sum_of<uint8_t, uint8_t>(static_cast<uint8_t*>(out), rows, num_rows, count, order);
  }
}

}  // namespace tycho
