// A number is a whole number of 24 bits times a power of two; its square has 48 bits and an exponent that is
// known beforehand.
#include "trainer/optim/exact_squares.h"

#include <ATen/Parallel.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <mutex>

namespace tycho {
namespace {

constexpr int64_t kExponents = 256, kAtOnce = 1 << 15;
constexpr uint64_t kHalfBits = 24, kLowHalf = (uint64_t{1} << kHalfBits) - 1;

/// Below 2^63 after kAtOnce squares of 48 bits.
using Squares = std::array<uint64_t, kExponents>;

void add_squares(const float* x, int64_t n, Squares& sums) {
  for (int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<uint32_t>(x[i]);
    const uint32_t exponent = bits >> 23 & 0xff;
    const uint64_t digits = (bits & 0x7fffff) | (exponent == 0 ? 0 : uint64_t{1} << 23);
    sums[exponent] += digits * digits;
  }
}

}  // namespace

Tensor exact_squares(const std::vector<Tensor>& flats) {
  Tensor parts = at::zeros({2, kExponents}, at::TensorOptions().dtype(at::kLong));
  int64_t* low = parts.mutable_data_ptr<int64_t>();
  int64_t* high = low + kExponents;
  std::mutex mutex;
  for (const Tensor& flat : flats) {
    const auto* x = flat.const_data_ptr<float>();
    at::parallel_for(0, flat.numel(), kAtOnce, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; at += kAtOnce) {
        Squares sums{};
        add_squares(x + at, std::min(kAtOnce, end - at), sums);
        const std::lock_guard lock(mutex);
        for (size_t e = 0; e < sums.size(); ++e) {
          low[e] += static_cast<int64_t>(sums[e] & kLowHalf);
          high[e] += static_cast<int64_t>(sums[e] >> kHalfBits);
        }
      }
    });
  }
  return parts.view({2 * kExponents});
}

Tensor total_of_squares(const Tensor& parts) {
  const auto* low = parts.const_data_ptr<int64_t>();
  const int64_t* high = low + kExponents;
  double sum = 0;
  for (int64_t e = 0; e + 1 < kExponents; ++e) {
    const auto scale = static_cast<int>(2 * (std::max<int64_t>(e, 1) - 150));
    // Which of the two numbers holds a part of the sum depends on how it was added; their sum does not.
    const __int128 whole = (static_cast<__int128>(high[e]) << kHalfBits) + low[e];
    sum += std::ldexp(static_cast<double>(whole), scale);
  }
  if (low[kExponents - 1] != 0 || high[kExponents - 1] != 0) sum = std::numeric_limits<double>::infinity();
  return at::full({1}, sum, at::TensorOptions().dtype(at::kDouble));
}

}  // namespace tycho
