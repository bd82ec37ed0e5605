// Matrix products in double, and how far from them a product in fp32 or bf16 may be.
#include "tests/trainer/kernels/matmul_oracle.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tycho {
namespace {

Tensor in_double(const Tensor& x) { return x.detach().to(at::kDouble); }

}  // namespace

ProductOracle::ProductOracle(const Tensor& left, const Tensor& right)
    : product(at::matmul(in_double(left), in_double(right).t())),
      magnitudes(at::matmul(in_double(left).abs(), in_double(right).abs().t())),
      terms(left.size(1)) {}

void ProductOracle::expect_near(const Tensor& actual, const Tensor* added, int roundings) const {
  const Tensor wanted = added ? product + in_double(*added) : product;
  const Tensor size = added ? magnitudes + in_double(*added).abs() : magnitudes;
  // A sum in fp32 rounds once or twice for each term, by at most 2^-24 of a partial sum, which is at most the
  // sum of magnitudes; the errors are as good as independent, so their sum grows with the root of their
  // number (Higham & Mary 2019). Eight of these deviations are never seen, in any order of summation.
  Tensor allowed = size * (8 * 0x1p-24 * std::sqrt(static_cast<double>(terms + 1)));
  if (actual.scalar_type() == at::kBFloat16) {
    allowed = allowed * (1 + 0x1p-8) + wanted.abs() * 0x1p-8;
    if (roundings > 1) allowed += product.abs() * 0x1p-8;
  }
  const Tensor excess = (in_double(actual) - wanted).abs() - allowed;
  // Written so that NaN fails.
  EXPECT_TRUE(excess.numel() == 0 || excess.max().item<double>() <= 0.0)
      << "largest difference " << (in_double(actual) - wanted).abs().max().item<double>() << ", allowed "
      << allowed.max().item<double>();
}

}  // namespace tycho
