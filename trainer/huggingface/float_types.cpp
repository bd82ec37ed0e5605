// Conversions of floats, by their bits.
#include "trainer/huggingface/float_types.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace tycho {
namespace {

constexpr uint32_t kInfinity = 0x7f800000;

float widen_bf16(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t narrow_bf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if ((bits & 0x7fffffff) > kInfinity) return static_cast<uint16_t>(bits >> 16 | 0x40);  // NaN stays one
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float widen_fp16(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16,
                 rest = static_cast<uint32_t>(half & 0x7fff) << 13;
  if ((half & 0x7c00) == 0x7c00) return std::bit_cast<float>(sign | rest | kInfinity);
  // The product moves the exponent from a bias of 15 to 127, subnormal numbers included.
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(std::bit_cast<float>(rest) * 0x1p112f));
}

uint16_t narrow_fp16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x), sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
  uint32_t half = 0;
  if (rest > kInfinity) {
    half = 0x7e00;
  } else if (rest >= 0x477ff000) {  // 65520: rounds to what fp16 does not have
    half = 0x7c00;
  } else if (rest < 0x38800000) {
    // Below 2^-14 halves are multiples of 2^-24, the last place of a float beside 0.5.
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(rest) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  } else {
    half = (rest - (112u << 23) + 0xfff + (rest >> 13 & 1)) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

template <class Convert>
void widen_each(const void* from, float* to, int64_t n, Convert convert) {
  const auto* bytes = static_cast<const char*>(from);
  for (int64_t i = 0; i < n; ++i) {
    uint16_t bits;
    std::memcpy(&bits, bytes + 2 * i, 2);
    to[i] = convert(bits);
  }
}

template <class Convert>
bool narrow_each(const float* from, void* to, int64_t n, uint16_t infinity, Convert convert) {
  auto* bytes = static_cast<char*>(to);
  bool fits = true;
  for (int64_t i = 0; i < n; ++i) {
    const uint16_t bits = convert(from[i]);
    fits = fits && ((bits & 0x7fff) != infinity || std::isinf(from[i]));
    std::memcpy(bytes + 2 * i, &bits, 2);
  }
  return fits;
}

}  // namespace

bool is_float_dtype(const std::string& dtype) { return dtype == "F32" || dtype == "BF16" || dtype == "F16"; }

void widen_floats(const std::string& dtype, const void* from, float* to, int64_t n) {
  if (dtype == "F32")
    std::memcpy(to, from, static_cast<size_t>(n) * 4);
  else if (dtype == "BF16")
    widen_each(from, to, n, widen_bf16);
  else
    widen_each(from, to, n, widen_fp16);
}

bool narrow_floats(const std::string& dtype, const float* from, void* to, int64_t n) {
  if (dtype == "BF16") return narrow_each(from, to, n, 0x7f80, narrow_bf16);
  if (dtype == "F16") return narrow_each(from, to, n, 0x7c00, narrow_fp16);
  std::memcpy(to, from, static_cast<size_t>(n) * 4);
  return true;
}

}  // namespace tycho
