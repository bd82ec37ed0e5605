// Newton-Schulz iterations: what they do to singular values.
#include "trainer/optim/newton_schulz.h"

#include <gtest/gtest.h>

#include "tests/trainer/aten.h"

namespace tycho {
namespace {

/// Machines with bf16 units iterate in bf16, others in fp32: both are tested on each.
class NewtonSchulzTest : public testing::TestWithParam<at::ScalarType> {
 protected:
  /// Half a unit in the last place of 1: what rounding to the dtype changes, relatively.
  double unit() const { return GetParam() == at::kFloat ? 0x1p-24 : 0x1p-9; }
  NewtonSchulzSpace space() const { return {24, 40 * 16, at::kCPU, GetParam()}; }
};

constexpr std::pair<int64_t, int64_t> kShapes[] = {{24, 24}, {16, 40}, {40, 16}, {1, 9}};

TEST_P(NewtonSchulzTest, OneIterationIsJordansQuintic) {
  at::manual_seed(1);
  for (const auto& [rows, columns] : kShapes) {
    NewtonSchulzSpace memory = space();
    Tensor x = at::randn({rows, columns}).to(GetParam());
    const Tensor y = x.to(at::kDouble) / x.to(at::kDouble).norm(), gram = y.mm(y.t());
    const Tensor wanted = y * 3.4445 + (gram * -4.7750 + gram.mm(gram) * 2.0315).mm(y);
    newton_schulz(x, 1, memory);
    // |y| = 1, so no rounding moves the result by more than a unit times its coefficients (3.4 + 4.8 + 2.0)
    // times the four roundings that an entry of y passes through; products of fp32 add one for each of the
    // terms that they sum.
    const double sums = GetParam() == at::kFloat ? static_cast<double>(std::max(rows, columns)) : 0;
    EXPECT_LT((x.to(at::kDouble) - wanted).norm().item<double>(), (40 + 10 * sums) * unit())
        << rows << " x " << columns;
  }
}

TEST_P(NewtonSchulzTest, SingularValuesComeNearOneAndVectorsStay) {
  at::manual_seed(2);
  for (const auto& [rows, columns] : kShapes) {
    NewtonSchulzSpace memory = space();
    Tensor x = at::randn({rows, columns});
    const Tensor before = x.clone();
    x = x.to(GetParam());
    newton_schulz(x, 10, memory);
    const Tensor values = std::get<1>(at::_linalg_svd(x.to(at::kFloat)));
    EXPECT_GT(values.min().item<float>(), 0.5) << rows << " x " << columns;
    EXPECT_LT(values.max().item<float>(), 1.3) << rows << " x " << columns;
    // U Vᵀ of what it was: Uᵀ X V is diagonal. Each of ten iterations rounds by some units, and
    // they grow with the singular values, by up to 3.4 each time: of 900 draws of these shapes the middle
    // one came to 20 units and the worst to 114, in fp32 and in bf16 alike.
    const auto [u, s, vh] = at::_linalg_svd(before.to(at::kDouble));
    const Tensor core = u.t().mm(x.to(at::kDouble)).mm(vh.t());
    EXPECT_LT((core - at::diag(at::diagonal(core))).abs().max().item<double>(), 250 * unit())
        << rows << " x " << columns;
  }
}

TEST_P(NewtonSchulzTest, AZeroGradientStaysZero) {
  NewtonSchulzSpace memory = space();
  Tensor x = at::zeros({4, 6}, GetParam());
  newton_schulz(x, 5, memory);
  EXPECT_EQ(x.abs().max().item<float>(), 0);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, NewtonSchulzTest, testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& info) { return info.param == at::kFloat ? "fp32" : "bf16"; });

}  // namespace
}  // namespace tycho
