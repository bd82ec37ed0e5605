// AdamW over flat units against its formula in double.
#include "trainer/optim/adamw.h"

#include <gtest/gtest.h>

#include <cmath>

#include "trainer/optim/grad_clip.h"

namespace tycho {
namespace {

UnitSpec mixed_unit() {
  UnitSpec unit{.name = "unit"};
  unit.params = {{"norm.weight", {5}, {}, false},
                 {"a", {3, 4}, {}, true},
                 {"b", {2, 4}, {}, true},
                 {"bias", {3}, {}, false}};
  return unit;
}

class AdamWTest : public testing::TestWithParam<at::ScalarType> {};

TEST_P(AdamWTest, FollowsTheFormulaAndSparesWhatDoesNotDecay) {
  at::manual_seed(3);
  std::vector<FlatUnit> units =
      make_units({mixed_unit(), mixed_unit()}, GetParam(), at::kCPU, FlatUnit::Use::kTrain);
  for (FlatUnit& unit : units) {
    unit.flat_master().normal_();
    unit.refresh_from_master();
  }
  AdamWConfig config{.lr = 1e-2, .betas = {0.8, 0.9}, .eps = 1e-6, .weight_decay = 0.3};
  AdamW optimizer(config, units);
  std::vector<at::Tensor> w, m, v;
  for (FlatUnit& unit : units) {
    w.push_back(unit.flat_master().to(at::kDouble).clone());
    m.push_back(at::zeros_like(w.back()));
    v.push_back(at::zeros_like(w.back()));
  }
  at::Tensor decay = at::zeros({28}, at::kDouble);
  decay.narrow(0, 5, 20).fill_(0.3);
  const double scale = 0.25;
  for (int step = 1; step <= 5; ++step) {
    for (size_t i = 0; i < units.size(); ++i) {
      units[i].flat_grads().normal_();
      const at::Tensor g = units[i].flat_grads().to(at::kDouble) * scale;
      m[i] = 0.8 * m[i] + 0.2 * g;
      v[i] = 0.9 * v[i] + 0.1 * g * g;
      w[i] = w[i] * (1 - 0.005 * decay);
      w[i] = w[i] -
             0.005 * (m[i] / (1 - std::pow(0.8, step))) / (at::sqrt(v[i] / (1 - std::pow(0.9, step))) + 1e-6);
    }
    optimizer.step(0.005, step, at::full({1}, scale, at::kFloat));
  }
  for (size_t i = 0; i < units.size(); ++i) {
    EXPECT_TRUE(at::allclose(units[i].flat_master().to(at::kDouble), w[i], 1e-5, 1e-6));
    EXPECT_TRUE(at::equal(units[i].flat_params(), units[i].flat_master().to(GetParam())));
    EXPECT_TRUE(at::allclose(optimizer.state()[0].flat[i].to(at::kDouble), m[i], 1e-5, 1e-7));
    EXPECT_TRUE(at::allclose(optimizer.state()[1].flat[i].to(at::kDouble), v[i], 1e-5, 1e-7));
  }
}
INSTANTIATE_TEST_SUITE_P(Dtypes, AdamWTest, testing::Values(at::kFloat, at::kBFloat16));

TEST(GradClipTest, ScalesOnlyWhatIsTooLong) {
  std::vector<FlatUnit> units =
      make_units({mixed_unit(), mixed_unit()}, at::kFloat, at::kCPU, FlatUnit::Use::kTrain);
  for (FlatUnit& unit : units) unit.flat_grads().fill_(2);
  const double norm = std::sqrt(56 * 4.0);
  EXPECT_NEAR(clip_gradients({1.5}, units).norm_1.item<float>(), norm, 1e-5);
  EXPECT_NEAR(clip_gradients({1.5}, units).scale_1.item<float>(), 1.5 / norm, 1e-6);
  EXPECT_EQ(clip_gradients({100.0}, units).scale_1.item<float>(), 1);
  EXPECT_EQ(clip_gradients({0.0}, units).scale_1.item<float>(), 1);
}

}  // namespace
}  // namespace tycho
