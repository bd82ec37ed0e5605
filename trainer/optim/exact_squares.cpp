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

/// One sum for each exponent; below 2^63 after kAtOnce squares of 48 bits.
using Squares = std::array<uint64_t, kExponents>;

void add_squares(const float* x, int64_t n, Squares& sums) {
  for (int64_t i = 0; i < n; ++i) {
    const auto bits = std::bit_cast<uint32_t>(x[i]);
    const uint32_t exponent = bits >> 23 & 0xff;
    const uint64_t digits = (bits & 0x7fffff) | (exponent == 0 ? 0 : uint64_t{1} << 23);
    sums[exponent] += digits * digits;
  }
}

/// Adds squares on the host to {low, high} of each exponent, [2, kExponents].
void add_on_host(const Tensor& flat, Tensor& parts) {
  int64_t* low = parts.mutable_data_ptr<int64_t>();
  int64_t* high = low + kExponents;
  std::mutex mutex;
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

/// Adds squares by operators, with a table of sums for each of many lanes, so that few numbers are added to
/// the same sum. The order of addition varies, which does not change whole numbers.
void add_by_operators(const Tensor& flat, Tensor& parts) {
  constexpr int64_t kLanes = 4096, kRows = 512;  // a place gets at most kRows squares of 48 bits
  const auto whole = parts.options();
  for (int64_t begin = 0; begin < flat.numel(); begin += kLanes * kRows) {
    const int64_t count = std::min(kLanes * kRows, flat.numel() - begin),
                  rows = (count + kLanes - 1) / kLanes;
    Tensor bits = at::zeros({rows * kLanes}, whole.dtype(at::kInt));
    bits.narrow(0, 0, count).copy_(flat.narrow(0, begin, count).view(at::kInt));
    const Tensor exponent = bits.bitwise_right_shift(23).bitwise_and_(0xff).to(at::kLong);
    Tensor digits = bits.bitwise_and_(0x7fffff).to(at::kLong);
    digits.add_(exponent.ne(0).to(at::kLong), 1 << 23);
    Tensor sums = at::zeros({kExponents, kLanes}, whole);
    sums.scatter_add_(0, exponent.view({rows, kLanes}), digits.mul_(digits).view({rows, kLanes}));
    parts[0].add_(sums.bitwise_and(static_cast<int64_t>(kLowHalf)).sum(1));
    parts[1].add_(sums.bitwise_right_shift(static_cast<int64_t>(kHalfBits)).sum(1));
  }
}

template <class Add>
Tensor sum_of(const std::vector<Tensor>& flats, const at::Device& device, const Add& add) {
  Tensor parts = at::zeros({2, kExponents}, at::TensorOptions(device).dtype(at::kLong));
  for (const Tensor& flat : flats) add(flat, parts);
  return parts.view({2 * kExponents});
}

}  // namespace

Tensor exact_squares(const std::vector<Tensor>& flats) {
  if (!flats.empty() && !flats.front().is_cpu()) return exact_squares_by_operators(flats);
  return sum_of(flats, at::kCPU, add_on_host);
}

Tensor exact_squares_by_operators(const std::vector<Tensor>& flats) {
  return sum_of(flats, flats.empty() ? at::Device(at::kCPU) : flats.front().device(), add_by_operators);
}

Tensor total_of_squares(const Tensor& parts) {
  const Tensor on_host = parts.cpu();
  const auto* low = on_host.const_data_ptr<int64_t>();
  const int64_t* high = low + kExponents;
  double sum = 0;
  for (int64_t e = 0; e + 1 < kExponents; ++e) {
    const auto scale = static_cast<int>(2 * (std::max<int64_t>(e, 1) - 150));
    // Which of the two numbers holds a part of the sum depends on how it was added; their sum does not.
    const __int128 whole = (static_cast<__int128>(high[e]) << kHalfBits) + low[e];
    sum += std::ldexp(static_cast<double>(whole), scale);
  }
  if (low[kExponents - 1] != 0 || high[kExponents - 1] != 0) sum = std::numeric_limits<double>::infinity();
  return at::full({1}, sum, parts.options().dtype(at::kDouble));
}

}  // namespace tycho
