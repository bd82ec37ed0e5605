// Steps whose activations wait in gradients that are not written yet: the numbers of a model that has memory
// of its own for them, and less memory.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/trainer/models/model_cases.h"
#include "trainer/base/error.h"
#include "trainer/models/model.h"
#include "trainer/sharding/arena.h"
#include "trainer/sharding/init.h"

namespace tycho {
namespace {

/// A model of a case with its units.
struct LendingModel {
  LendingModel(const ModelCase& with, std::vector<UnitSpec> specs, const ShardRules& rules,
               const RecomputeConfig& recompute)
      : units(std::move(specs), at::kFloat, at::kCPU, UnitUse::kTrain, {}, rules) {
    for (const OwnedRange& range : units.owned()) initialise(range, 11);
    const int64_t before = arena_bytes();
    model = std::make_unique<Model>(with.config, units, with.shape, at::kFloat, at::kCPU, recompute);
    activation_bytes = arena_bytes() - before;
  }
  LocalUnits units;
  std::unique_ptr<Model> model;
  int64_t activation_bytes = 0;
};

class LentGradients : public testing::TestWithParam<ModelCase> {
 protected:
  std::vector<UnitSpec> specs() const { return model_layout(GetParam().config).units; }
  MicroBatch micro_batch(int64_t seq) const {
    const int64_t vocab = decoder_spec(GetParam().config).vocab_size, count = GetParam().shape.batch * seq;
    return {.tokens_N = at::randint(vocab, {count}, at::kInt),
            .targets_N = at::randint(vocab, {count}, at::kInt),
            .dropout_key = 3};
  }
  /// Expects the same bits of losses and gradients in steps and evaluations of several widths.
  void expect_same(LendingModel& borrows, LendingModel& owns) const {
    const Tensor weight_1 = at::full({1}, 0.125, at::kFloat);
    const int64_t whole = GetParam().shape.seq;
    for (const int64_t seq : {whole, whole, (whole + 1) / 2, whole}) {
      const MicroBatch micro = micro_batch(seq);
      for (LendingModel* one : {&borrows, &owns}) one->units.begin_step();
      EXPECT_TRUE(at::equal(borrows.model->at_width(seq).forward_backward(micro, weight_1),
                            owns.model->at_width(seq).forward_backward(micro, weight_1)));
      const std::vector<OwnedRange>&ours = borrows.units.owned(), &wanted = owns.units.owned();
      for (size_t u = 0; u < ours.size(); ++u)
        if (wanted[u].grads.defined()) {
          EXPECT_TRUE(at::equal(ours[u].grads, wanted[u].grads)) << seq << ", unit " << u;
        }
      const MicroBatch other = micro_batch(whole);  // evaluated between two steps
      EXPECT_TRUE(at::equal(borrows.model->losses(other.tokens_N, other.targets_N),
                            owns.model->losses(other.tokens_N, other.targets_N)));
    }
  }
};

TEST_P(LentGradients, HoldActivationsUntilTheyAreWritten) {
  at::manual_seed(5);
  for (const Recompute mode :
       {Recompute::kNone, Recompute::kNorms, Recompute::kSelective, Recompute::kFull}) {
    LendingModel borrows(GetParam(), specs(), {.lends_gradients = true}, {mode, 1}),
        owns(GetParam(), specs(), {}, {mode, 1});
    if (borrows.units.lent(1).defined()) {
      EXPECT_LT(borrows.activation_bytes, owns.activation_bytes);
    }
    expect_same(borrows, owns);
  }
}

TEST_P(LentGradients, OfUnitsThatArePartlyFrozenStayZero) {
  at::manual_seed(6);
  std::vector<UnitSpec> some_frozen = specs();
  for (size_t u = 1; u < some_frozen.size(); u += 2)
    if (!some_frozen[u].params.empty()) some_frozen[u].params.back().frozen = true;
  LendingModel borrows(GetParam(), some_frozen, {.lends_gradients = true}, {}),
      owns(GetParam(), some_frozen, {}, {});
  EXPECT_FALSE(borrows.units.lent(1).defined());
  expect_same(borrows, owns);
}

TEST(LentGradientsOfAStep, AllowOneMicroBatch) {
  const ModelCase first = model_cases().front();
  LendingModel borrows(first, model_layout(first.config).units, {.lends_gradients = true}, {});
  const Tensor ids = at::ones({first.shape.tokens()}, at::kInt);
  EXPECT_THROW(borrows.model->forward({.tokens_N = ids, .targets_N = ids, .first = false}, {}), Error);
}

INSTANTIATE_TEST_SUITE_P(Shapes, LentGradients, testing::ValuesIn(model_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tycho
