// First weights: distributions, and that they are a function of seed, name and element alone.
#include "trainer/sharding/init.h"

#include <gtest/gtest.h>

#include "tests/trainer/aten.h"

namespace tycho {
namespace {

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
  const GatheredUnit one(UnitLayout(spec), at::kFloat, at::kCPU, UnitUse::kTrain),
      two(UnitLayout(spec), at::kFloat, at::kCPU, UnitUse::kTrain);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  initialise(own_unit(one, UnitUse::kTrain), 9);
  at::set_num_threads(2);
  initialise(own_unit(two, UnitUse::kTrain), 9);
  at::set_num_threads(threads);
  EXPECT_TRUE(at::equal(one.flat_params(), two.flat_params()));
}

TEST(InitTest, PartsOfAUnitGetWhatTheWholeGets) {
  UnitSpec spec{.name = "unit"};
  spec.params = {{"norm", {7}, {Init::Kind::kOnes, 0}},
                 {"q", {33, 9}, {Init::Kind::kNormal, 0.5}},
                 {"k", {5, 9}, {Init::Kind::kCutNormal, 0.5}},
                 {"bias", {11}, {Init::Kind::kUniform, 0.3}}};
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const GatheredUnit whole(UnitLayout(spec), dtype, at::kCPU, UnitUse::kTrain);
    initialise(own_unit(whole, UnitUse::kTrain), 9);
    const GatheredUnit parts(UnitLayout(spec), dtype, at::kCPU, UnitUse::kTrain);
    const int64_t numel = parts.layout().numel();
    const std::vector<int64_t> cuts = {0, 3, 7, 7, 50, 305, 351, numel};
    for (size_t i = 0; i + 1 < cuts.size(); ++i)
      initialise(own_range(parts, cuts[i], cuts[i + 1], UnitUse::kTrain), 9);
    EXPECT_TRUE(at::equal(parts.flat_params(), whole.flat_params())) << dtype;
  }
}

}  // namespace
}  // namespace tycho
