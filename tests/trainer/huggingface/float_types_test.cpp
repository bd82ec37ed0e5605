// Half floats against their tables and each other.
#include "trainer/huggingface/float_types.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace tycho {
namespace {

float widened(const char* dtype, uint16_t bits) {
  float x = 0;
  widen_floats(dtype, &bits, &x, 1);
  return x;
}

uint16_t narrowed(const char* dtype, float x, bool* fits = nullptr) {
  uint16_t bits = 0;
  const bool fit = narrow_floats(dtype, &x, &bits, 1);
  if (fits != nullptr) *fits = fit;
  return bits;
}

/// The value of a half by its definition.
double half_value(int bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double size = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return bits & 0x8000 ? -size : size;
}

TEST(FloatTypes, WidensEveryHalfExactly) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7c00) == 0x7c00) continue;
    ASSERT_EQ(widened("F16", static_cast<uint16_t>(bits)), half_value(bits)) << bits;
  }
  EXPECT_EQ(widened("F16", 0xfc00), -INFINITY);
  EXPECT_TRUE(std::isnan(widened("F16", 0x7e00)));
}

TEST(FloatTypes, GivesBackWhatItWidened) {
  for (const char* dtype : {"F16", "BF16"})
    for (int bits = 0; bits < 0x10000; ++bits) {
      const float x = widened(dtype, static_cast<uint16_t>(bits));
      if (std::isnan(x)) continue;
      ASSERT_EQ(narrowed(dtype, x), bits) << dtype;
    }
}

TEST(FloatTypes, RoundsToTheNearestAndTiesToEven) {
  for (int bits = 0; bits < 0x7bff; ++bits) {
    const double low = half_value(bits), high = half_value(bits + 1), middle = (low + high) / 2;
    const auto exact = static_cast<float>(middle);  // one bit more than a half: exact
    ASSERT_EQ(narrowed("F16", exact), bits % 2 ? bits + 1 : bits);
    ASSERT_EQ(narrowed("F16", std::nextafter(exact, 0.0f)), bits);
    ASSERT_EQ(narrowed("F16", std::nextafter(exact, 1e9f)), bits + 1);
  }
  EXPECT_EQ(narrowed("BF16", 1.00390625f), 0x3f80);  // half way between 1 and 1.0078125
  EXPECT_EQ(narrowed("BF16", std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(narrowed("BF16", std::bit_cast<float>(0x3f818000u)), 0x3f82);
}

TEST(FloatTypes, SaysWhenANumberDoesNotFit) {
  bool fits = true;
  narrowed("F16", 65519.0f, &fits);
  EXPECT_TRUE(fits);
  EXPECT_EQ(narrowed("F16", 65520.0f, &fits), 0x7c00);
  EXPECT_FALSE(fits);
  narrowed("BF16", std::numeric_limits<float>::max(), &fits);
  EXPECT_FALSE(fits);
  EXPECT_EQ(narrowed("F16", INFINITY, &fits), 0x7c00);
  EXPECT_TRUE(fits);
  EXPECT_TRUE(std::isnan(widened("BF16", narrowed("BF16", NAN))));
}

}  // namespace
}  // namespace tycho
