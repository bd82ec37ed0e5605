// Newton-Schulz iterations: what they do to singular values.
#include "trainer/optim/newton_schulz.h"

#include <gtest/gtest.h>

#include "tests/trainer/aten.h"

namespace tycho {
namespace {

TEST(NewtonSchulzTest, SingularValuesComeNearOneAndVectorsStay) {
  at::manual_seed(2);
  for (const auto& [rows, columns] : {std::pair{24, 24}, {16, 40}, {40, 16}, {1, 9}}) {
    NewtonSchulzSpace space(24, 40 * 16, at::kCPU);
    Tensor x = at::randn({rows, columns});
    const Tensor before = x.clone();
    x = x.to(space.dtype);
    newton_schulz(x, 10, space);
    const Tensor values = std::get<1>(at::_linalg_svd(x.to(at::kFloat)));
    EXPECT_GT(values.min().item<float>(), 0.5) << rows << " x " << columns;
    EXPECT_LT(values.max().item<float>(), 1.3) << rows << " x " << columns;
    // U Vᵀ of what it was: Uᵀ X V is diagonal.
    const auto [u, s, vh] = at::_linalg_svd(before);
    const Tensor core = u.t().mm(x.to(at::kFloat)).mm(vh.t());
    EXPECT_LT((core - at::diag(at::diagonal(core))).abs().max().item<float>(), 0.02);
  }
}

TEST(NewtonSchulzTest, AZeroGradientStaysZero) {
  NewtonSchulzSpace space(4, 24, at::kCPU);
  Tensor x = at::zeros({4, 6}, space.dtype);
  newton_schulz(x, 5, space);
  EXPECT_EQ(x.abs().max().item<float>(), 0);
}

}  // namespace
}  // namespace tycho
