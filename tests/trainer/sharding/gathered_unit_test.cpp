// Views of the flat buffers of a whole unit.
#include "trainer/sharding/gathered_unit.h"

#include <gtest/gtest.h>

#include "tests/trainer/aten.h"

namespace tycho {
namespace {

UnitSpec two_matrices() {
  UnitSpec unit{.name = "unit"};
  unit.params = {{"norm", {6}, {}, false}, {"q", {4, 6}}, {"k", {2, 6}}};
  unit.stacks = {{1, 2}};
  return unit;
}

TEST(GatheredUnitTest, ParametersAndStacksAreViewsOfOneBuffer) {
  GatheredUnit unit(UnitLayout(two_matrices()), at::kFloat, at::kCPU, UnitUse::kTrain);
  Tensor(unit.flat_params()).copy_(at::arange(42));
  EXPECT_EQ(unit.params()[1].sizes(), (std::vector<int64_t>{4, 6}));
  EXPECT_EQ(unit.params()[2][0][0].item<float>(), 30);
  ASSERT_EQ(unit.params()[3].sizes(), (std::vector<int64_t>{6, 6}));
  EXPECT_TRUE(at::equal(unit.params()[3], at::concat({unit.params()[1], unit.params()[2]})));
  unit.grads()[3].fill_(2);
  EXPECT_EQ(unit.flat_grads().sum().item<float>(), 72);
}

TEST(GatheredUnitTest, FrozenParametersHaveNoGradients) {
  UnitSpec spec = two_matrices();
  spec.params[1].frozen = true;
  GatheredUnit some(UnitLayout(spec), at::kFloat, at::kCPU, UnitUse::kTrain);
  EXPECT_FALSE(some.grads()[1].defined());
  EXPECT_TRUE(some.grads()[3].defined()) << "a stack with a matrix that is trained";
  for (ParamSpec& param : spec.params) param.frozen = true;
  GatheredUnit none(UnitLayout(spec), at::kFloat, at::kCPU, UnitUse::kTrain);
  EXPECT_FALSE(none.flat_grads().defined());
  ASSERT_EQ(none.grads().size(), 4u);
  for (const Tensor& grad : none.grads()) EXPECT_FALSE(grad.defined());
}

TEST(GatheredUnitTest, AUnitThatOnlyInfersHasNoGradients) {
  GatheredUnit unit(UnitLayout(two_matrices()), at::kFloat, at::kCPU, UnitUse::kInfer);
  EXPECT_FALSE(unit.flat_grads().defined());
  EXPECT_TRUE(unit.grads().empty());
}

}  // namespace
}  // namespace tycho
