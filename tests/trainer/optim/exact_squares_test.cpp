// Sums of squares against whole numbers of 128 bits and against other orders.
#include "trainer/optim/exact_squares.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/trainer/aten.h"

namespace tycho {
namespace {

double total(const std::vector<Tensor>& flats) {
  return total_of_squares(exact_squares(flats)).item<double>();
}

TEST(ExactSquares, AreThoseOfLongSums) {
  at::manual_seed(5);
  const Tensor x = at::randn({100003});
  long double wanted = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const long double one = x.const_data_ptr<float>()[i];
    wanted += one * one;
  }
  EXPECT_NEAR(total({x}) / static_cast<double>(wanted), 1, 1e-15);
  // Fractions of 2^-20 have squares that are whole numbers of 2^-40: exact in 128 bits.
  const Tensor parts = at::randint(-(1 << 23), 1 << 23, {40000}, at::kInt);
  unsigned __int128 exact = 0;
  for (int64_t i = 0; i < parts.numel(); ++i) {
    const int64_t one = parts.const_data_ptr<int>()[i];
    exact += static_cast<unsigned __int128>(one * one);
  }
  const double rounded = std::ldexp(static_cast<double>(exact), -40);
  EXPECT_NEAR(total({parts.to(at::kFloat).mul_(0x1p-20)}) / rounded, 1, 4e-16);
}

TEST(ExactSquares, AreTheSameInAnyOrderAndAnyParts) {
  at::manual_seed(6);
  const Tensor x = at::randn({150001}) * at::randn({150001}).mul_(20).exp_();
  const double wanted = total({x});
  EXPECT_EQ(total({x.flip({0})}), wanted);
  for (const int64_t cut : {1, 32, 65537, 150000}) {
    const Tensor begin = x.narrow(0, 0, cut), end = x.narrow(0, cut, x.numel() - cut);
    EXPECT_EQ(total({end, begin}), wanted) << cut;
    EXPECT_EQ(total_of_squares(exact_squares({begin}) + exact_squares({end})).item<double>(), wanted) << cut;
  }
  const int before = at::get_num_threads();
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    EXPECT_EQ(total({x}), wanted) << threads;
  }
  at::set_num_threads(before);
}

TEST(ExactSquares, ByOperatorsAreTheSame) {
  at::manual_seed(7);
  const auto bits = [](const std::vector<Tensor>& flats) {
    return total_of_squares(exact_squares_by_operators(flats)).item<double>();
  };
  for (const int64_t count : {0, 1, 4095, 4096, 4097, 2500003}) {
    const Tensor x = at::randn({count}) * at::randn({count}).mul_(30).exp_();
    EXPECT_EQ(bits({x}), total({x})) << count;
    EXPECT_EQ(bits({x, x.flip({0})}), total({x, x})) << count;
  }
  // The most that may meet at one place.
  EXPECT_EQ(bits({at::full({2500003}, std::nextafter(2.0F, 0.0F))}),
            total({at::full({2500003}, std::nextafter(2.0F, 0.0F))}));
  EXPECT_EQ(bits({at::full({3}, std::numeric_limits<float>::denorm_min())}), 3 * std::ldexp(1.0, -298));
  EXPECT_FALSE(std::isfinite(bits({at::full({2}, -std::numeric_limits<float>::infinity())})));
}

TEST(ExactSquares, OfTheSmallestTheLargestAndNone) {
  const float smallest = std::numeric_limits<float>::denorm_min(),
              largest = std::numeric_limits<float>::max();
  const auto of = [](float x, int64_t count) { return at::full({count}, x, at::kFloat); };
  EXPECT_EQ(total({of(smallest, 4)}), 4 * std::ldexp(1.0, -298));
  EXPECT_EQ(total({of(std::numeric_limits<float>::min(), 1)}), std::ldexp(1.0, -252));
  EXPECT_EQ(total({of(largest, 100000)}), 100000 * (static_cast<double>(largest) * largest));
  EXPECT_EQ(total({of(-3, 5), of(0, 7)}), 45);
  EXPECT_EQ(total({}), 0);
  EXPECT_EQ(total({of(1, 0)}), 0);
  for (const double bad : {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    EXPECT_FALSE(std::isfinite(total({of(1, 3), of(static_cast<float>(bad), 1)})));
}

}  // namespace
}  // namespace tycho
