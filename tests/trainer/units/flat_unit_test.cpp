// Views of flat buffers, and first weights.
#include "trainer/units/flat_unit.h"

#include <gtest/gtest.h>

#include "tests/trainer/aten.h"
#include "trainer/units/init.h"

namespace tycho {
namespace {

UnitSpec two_matrices() {
  UnitSpec unit{.name = "unit"};
  unit.params = {{"norm", {6}, {Init::Kind::kOnes, 0}, false},
                 {"q", {4, 6}, {Init::Kind::kNormal, 0.5}},
                 {"k", {2, 6}, {Init::Kind::kNormal, 0.5}}};
  unit.stacks = {{1, 2}};
  return unit;
}

TEST(FlatUnitTest, ParametersAndStacksAreViewsOfOneBuffer) {
  FlatUnit unit(two_matrices(), at::kFloat, at::kCPU, FlatUnit::Use::kTrain);
  unit.flat_params().copy_(at::arange(42));
  EXPECT_EQ(unit.params()[1].sizes(), (std::vector<int64_t>{4, 6}));
  EXPECT_EQ(unit.params()[2][0][0].item<float>(), 30);
  ASSERT_EQ(unit.params()[3].sizes(), (std::vector<int64_t>{6, 6}));
  EXPECT_TRUE(at::equal(unit.params()[3], at::concat({unit.params()[1], unit.params()[2]})));
  unit.grads()[3].fill_(2);
  EXPECT_EQ(unit.flat_grads().sum().item<float>(), 72);
  EXPECT_TRUE(unit.flat_master().is_same(unit.flat_params()));
}

TEST(FlatUnitTest, Bf16ParametersAreTheRoundedMaster) {
  FlatUnit unit(two_matrices(), at::kBFloat16, at::kCPU, FlatUnit::Use::kTrain);
  initialise(unit, 3);
  EXPECT_EQ(unit.flat_master().scalar_type(), at::kFloat);
  EXPECT_TRUE(at::equal(unit.flat_params(), unit.flat_master().to(at::kBFloat16)));
  EXPECT_FALSE(at::equal(unit.flat_params().to(at::kFloat), unit.flat_master()));
}

TEST(FlatUnitTest, AUnitThatOnlyInfersHasNoGradients) {
  FlatUnit unit(two_matrices(), at::kFloat, at::kCPU, FlatUnit::Use::kInfer);
  EXPECT_FALSE(unit.flat_grads().defined());
  EXPECT_FALSE(unit.flat_master().defined());
}

TEST(InitTest, IsNormalWithTheSpecsDeviation) {
  const ParamSpec spec = {"weight", {400, 500}, {Init::Kind::kNormal, 0.02}};
  std::vector<float> values(200000);
  draw_init(spec, 17, 0, 200000, values.data());
  const at::Tensor x = at::from_blob(values.data(), {200000}).to(at::kDouble);
  EXPECT_NEAR(x.mean().item<double>(), 0, 2e-4);
  EXPECT_NEAR(x.std().item<double>(), 0.02, 2e-4);
  EXPECT_NEAR((x.abs() < 0.02).to(at::kDouble).mean().item<double>(), 0.6827, 5e-3);
  EXPECT_NEAR((x.pow(4).mean() / x.pow(2).mean().pow(2)).item<double>(), 3.0, 0.05);
}

TEST(InitTest, CutsNormalNumbersAtThreeDeviations) {
  const ParamSpec spec = {"head", {200000}, {Init::Kind::kCutNormal, 0.05}};
  std::vector<float> values(200000);
  draw_init(spec, 17, 0, 200000, values.data());
  const at::Tensor x = at::from_blob(values.data(), {200000}).to(at::kDouble);
  EXPECT_LE(x.abs().max().item<double>(), 0.15 + 1e-9);
  EXPECT_GT(x.abs().max().item<double>(), 0.149);
  EXPECT_NEAR(x.mean().item<double>(), 0, 5e-4);
  EXPECT_NEAR(x.std().item<double>() / 0.05, 0.98658, 5e-3);  // of a normal number within ±3
}

TEST(InitTest, IsUniformAroundItsMiddle) {
  const ParamSpec spec = {"w", {200000}, {Init::Kind::kUniform, 0.3, 0.2}};
  std::vector<float> values(200000);
  draw_init(spec, 17, 0, 200000, values.data());
  const at::Tensor x = at::from_blob(values.data(), {200000}).to(at::kDouble);
  EXPECT_NEAR(x.min().item<double>(), -0.1, 1e-4);
  EXPECT_NEAR(x.max().item<double>(), 0.5, 1e-4);
  EXPECT_NEAR(x.mean().item<double>(), 0.2, 2e-3);
}

TEST(InitTest, AnyPieceIsAFunctionOfSeedNameAndElement) {
  const ParamSpec spec = {"weight", {1000}, {Init::Kind::kNormal, 1.0}};
  std::vector<float> whole(1000), piece(313);
  draw_init(spec, 1, 0, 1000, whole.data());
  draw_init(spec, 1, 101, 313, piece.data());
  for (size_t i = 0; i < piece.size(); ++i) ASSERT_EQ(piece[i], whole[101 + i]);
  std::vector<float> other(1000);
  draw_init(spec, 2, 0, 1000, other.data());
  EXPECT_NE(whole, other);
  draw_init({"weight2", {1000}, {Init::Kind::kNormal, 1.0}}, 1, 0, 1000, other.data());
  EXPECT_NE(whole, other);
}

TEST(InitTest, DoesNotDependOnThreads) {
  UnitSpec spec{.name = "big"};
  spec.params = {{"w", {600, 500}, {Init::Kind::kNormal, 0.1}}};
  FlatUnit one(spec, at::kFloat, at::kCPU, FlatUnit::Use::kTrain),
      two(spec, at::kFloat, at::kCPU, FlatUnit::Use::kTrain);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  initialise(one, 9);
  at::set_num_threads(2);
  initialise(two, 9);
  at::set_num_threads(threads);
  EXPECT_TRUE(at::equal(one.flat_params(), two.flat_params()));
}

}  // namespace
}  // namespace tycho
