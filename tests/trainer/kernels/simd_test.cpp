// The vector arithmetic under the CPU kernels.
#define TYCHO_ISA simd_under_test
#include "trainer/kernels/cpu/elementary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace tycho::simd_under_test {
namespace {

float exp_of(float x) { return exp(broadcast(x))[0]; }

/// Returns a number with any bits, and often one near those of other calls.
float any_float(std::mt19937& random) {
  const uint32_t bits = random();
  return std::bit_cast<float>(random() % 2 ? bits : (bits & 0x80ffffffu) | 0x3f000000u);
}

TEST(Simd, FusedMultiplyAddRoundsOnceLikeTheCLibrarys) {
  std::mt19937 random(5);
  for (int i = 0; i < 2000000; ++i) {
    const float a = any_float(random), b = any_float(random);
    const float c =
        i % 3 == 0 ? -a * b * (1 + static_cast<float>(random() % 5) * 0x1p-23f) : any_float(random);
    const float wanted = std::fma(a, b, c),
                got = fused_multiply_add(broadcast(a), broadcast(b), broadcast(c))[0];
    if (std::isnan(wanted))
      ASSERT_TRUE(std::isnan(got)) << a << " " << b << " " << c;
    else
      ASSERT_EQ(std::bit_cast<uint32_t>(wanted), std::bit_cast<uint32_t>(got)) << a << " " << b << " " << c;
  }
}

TEST(Simd, ExpIsWithinTwoUlp) {
  for (double x = -87.0; x < 88.3; x += 0.00137) {
    const float at = static_cast<float>(x);
    const double exact = std::exp(static_cast<double>(at));
    const double ulp = std::nextafter(static_cast<float>(exact), INFINITY) - static_cast<float>(exact);
    ASSERT_LE(std::abs(exp_of(at) - exact), 2 * ulp) << "at " << at;
  }
}

TEST(Simd, ExpHandlesExtremeArguments) {
  EXPECT_EQ(exp_of(0.0f), 1.0f);
  EXPECT_EQ(exp_of(-INFINITY), 0.0f);
  EXPECT_EQ(exp_of(-200.0f), 0.0f);
  EXPECT_EQ(exp_of(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(exp_of(std::nanf(""))));
}

TEST(Simd, TanhIsWithinFourUlp) {
  for (double x = -12.0; x < 12.0; x += 0.00037) {
    const float at = static_cast<float>(x);
    const double exact = std::tanh(static_cast<double>(at));
    ASSERT_LE(std::abs(hyperbolic_tangent(broadcast(at))[0] - exact), 4 * 0x1p-23 * std::abs(exact))
        << "at " << at;
  }
  EXPECT_EQ(hyperbolic_tangent(broadcast(-INFINITY))[0], -1.0f);
  EXPECT_TRUE(std::isnan(hyperbolic_tangent(broadcast(NAN))[0]));
}

TEST(Simd, NormalDistributionHoldsInItsTails) {
  for (double x = -9.0; x < 9.0; x += 0.00037) {
    const float at = static_cast<float>(x);
    const double cdf = 0.5 * std::erfc(-static_cast<double>(at) / std::sqrt(2.0));
    const double density = 0.3989422804 * std::exp(-0.5 * at * static_cast<double>(at));
    const Normal got = normal(broadcast(at));
    ASSERT_NEAR(got.cdf[0], cdf, std::min(2.5e-7, 3e-6 * cdf)) << "at " << at;
    ASSERT_NEAR(got.density[0], density, 3e-6 * density) << "at " << at;
  }
  EXPECT_EQ(normal(broadcast(INFINITY)).cdf[0], 1.0f);
  EXPECT_EQ(normal(broadcast(-INFINITY)).cdf[0], 0.0f);
}

TEST(Simd, LoopsTouchEachElementOnce) {
  for (int64_t n : {0, 1, kLanes - 1, kLanes, kLanes + 1, 5 * kLanes + 3}) {
    std::vector<float> x(n + 1, 1.0f);
    for_lanes(n,
              [&](int64_t i, auto lanes) { store(x.data() + i, load(x.data() + i, lanes) + 1.0f, lanes); });
    for (int64_t i = 0; i < n; ++i) EXPECT_EQ(x[i], 2.0f);
    EXPECT_EQ(x[n], 1.0f);
  }
}

}  // namespace
}  // namespace tycho::simd_under_test
