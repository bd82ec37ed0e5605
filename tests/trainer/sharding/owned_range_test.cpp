// What a rank owns of a unit: its views of the gathered buffers, and its master weights.
#include "trainer/sharding/owned_range.h"

#include <gtest/gtest.h>

#include "tests/trainer/aten.h"

namespace tycho {
namespace {

UnitLayout matrices_layout() {
  UnitSpec unit{.name = "unit"};
  unit.params = {{"norm", {6}, {}, false}, {"q", {4, 6}}, {"k", {2, 6}}};
  return UnitLayout(unit);
}

TEST(OwnedRangeTest, MasterWeightsAreTheParametersInFp32AndInPlace) {
  const GatheredUnit fp32(matrices_layout(), at::kFloat, at::kCPU, UnitUse::kTrain);
  const GatheredUnit bf16(matrices_layout(), at::kBFloat16, at::kCPU, UnitUse::kTrain);
  EXPECT_FALSE(own_unit(fp32, UnitUse::kTrain).has_own_master());
  EXPECT_FALSE(own_unit(fp32, UnitUse::kTrainStochastic).rounds_stochastically);
  EXPECT_FALSE(own_unit(bf16, UnitUse::kTrainInPlace).has_own_master());
  EXPECT_TRUE(own_unit(bf16, UnitUse::kTrainStochastic).rounds_stochastically);
  const OwnedRange mixed = own_unit(bf16, UnitUse::kTrain);
  EXPECT_TRUE(mixed.has_own_master());
  EXPECT_EQ(mixed.master.scalar_type(), at::kFloat);
  const OwnedRange infers = own_unit(bf16, UnitUse::kInfer);
  EXPECT_FALSE(infers.master.defined() || infers.grads.defined());
  EXPECT_EQ(infers.weights().data_ptr(), bf16.flat_params().data_ptr());
}

TEST(OwnedRangeTest, APartRefreshesItsSpanOfTheParametersAndNothingElse) {
  const GatheredUnit unit(matrices_layout(), at::kBFloat16, at::kCPU, UnitUse::kTrain);
  const OwnedRange part = own_range(unit, 5, 19, UnitUse::kTrain);
  EXPECT_EQ(part.size(), 14);
  ASSERT_EQ(part.extents.size(), 2u);
  EXPECT_EQ(part.extents[0].spec->name, "norm");
  EXPECT_EQ(part.extents[0].first, 5);
  EXPECT_EQ(part.extents[1].begin, 1);
  EXPECT_EQ(part.extents[1].end, 14);
  Tensor(part.master).copy_(at::arange(1, 15).to(at::kFloat).mul(1.001));
  Tensor(part.grads).fill_(3);
  part.refresh_from_master();
  const Tensor params = unit.flat_params().to(at::kFloat);
  EXPECT_TRUE(at::equal(params.narrow(0, 5, 14), part.master.to(at::kBFloat16).to(at::kFloat)));
  EXPECT_FALSE(at::equal(params.narrow(0, 5, 14), part.master));
  EXPECT_EQ(params.narrow(0, 0, 5).abs().sum().item<float>(), 0);
  EXPECT_EQ(params.narrow(0, 19, 23).abs().sum().item<float>(), 0);
  EXPECT_EQ(unit.flat_grads().sum().item<float>(), 14 * 3);
}

TEST(OwnedRangeTest, MayBeEmpty) {
  const GatheredUnit unit(matrices_layout(), at::kBFloat16, at::kCPU, UnitUse::kTrain);
  const OwnedRange none = own_range(unit, 42, 42, UnitUse::kTrain);
  EXPECT_TRUE(none.extents.empty());
  EXPECT_EQ(none.master.numel(), 0);
  none.refresh_from_master();
}

}  // namespace
}  // namespace tycho
