// The moving average of weights against a plain loop in double, on a whole and on parts of it.
#include "trainer/optim/weight_average.h"

#include <gtest/gtest.h>

#include "tests/trainer/aten.h"
#include "trainer/optim/segments.h"

namespace tycho {
namespace {

std::vector<UnitSpec> small_model() {
  UnitSpec embedding{.name = "embedding"}, block{.name = "block"};
  embedding.params = {{"embedding.weight", {9, 45}}};
  block.params = {{"norm", {37}, {}, false}, {"matrix", {61, 45}}, {"out", {45, 61}}};
  return {embedding, block};
}

/// Units of which this rank owns [share(numel).first, share(numel).second), and their average.
struct Averaged {
  using Share = std::function<std::pair<int64_t, int64_t>(int64_t numel)>;
  Averaged(at::ScalarType dtype, UnitUse use, const Share& share,
           const std::vector<ParamGroupConfig>& groups = {}) {
    for (const UnitSpec& spec : small_model()) units.emplace_back(UnitLayout(spec), dtype, at::kCPU, use);
    for (const GatheredUnit& unit : units) {
      const auto [begin, end] = share(unit.layout().numel());
      ranges.push_back(own_range(unit, begin, end, use));
    }
    average.emplace(ranges, param_rules({AdamWConfig{}}, groups, small_model()), /*replaces=*/true);
  }
  /// The owned elements of tensors as large as the units become the weights.
  void take(const std::vector<Tensor>& weights) {
    for (size_t u = 0; u < ranges.size(); ++u) {
      Tensor own = ranges[u].weights();
      own.copy_(weights[u].narrow(0, ranges[u].begin, ranges[u].size()));
      ranges[u].refresh_from_master();
    }
  }
  std::vector<Tensor> params() const {
    std::vector<Tensor> all;
    for (const OwnedRange& range : ranges) all.push_back(range.params.clone());
    return all;
  }
  std::vector<GatheredUnit> units;
  std::vector<OwnedRange> ranges;
  std::optional<WeightAverage> average;
};

const Averaged::Share kAll = [](int64_t numel) { return std::pair<int64_t, int64_t>(0, numel); };

std::vector<Tensor> random_weights() {
  std::vector<Tensor> flats;
  for (const UnitSpec& spec : small_model()) flats.push_back(at::randn({spec.numel()}, at::kFloat));
  return flats;
}

const std::pair<at::ScalarType, UnitUse> kUses[] = {{at::kFloat, UnitUse::kTrain},
                                                    {at::kBFloat16, UnitUse::kTrain},
                                                    {at::kBFloat16, UnitUse::kTrainInPlace},
                                                    {at::kBFloat16, UnitUse::kTrainStochastic}};

TEST(WeightAverage, FollowsThePlainLoop) {
  for (const auto& [dtype, use] : kUses) {
    at::manual_seed(3);
    Averaged run(dtype, use, kAll);
    EXPECT_FALSE(run.average->has_begun());
    EXPECT_TRUE(run.average->state().empty());
    std::vector<Tensor> oracle(2);
    for (int step = 0; step < 60; ++step) {
      run.take(random_weights());
      if (step == 0)
        run.average->begin();
      else
        run.average->update(0.97);
      // torch.optim.swa_utils.AveragedModel with get_ema_multi_avg_fn(0.97); bf16 without a master is
      // averaged as it is.
      for (size_t u = 0; u < 2; ++u) {
        const Tensor weights = run.ranges[u].weights().to(at::kDouble);
        oracle[u] = step == 0 ? weights : oracle[u] * 0.97 + weights * (1 - 0.97);
      }
    }
    const std::vector<StateBuffer>& state = run.average->state();
    ASSERT_EQ(state.size(), 2U);
    for (size_t u = 0; u < 2; ++u) {
      EXPECT_EQ(state[u].flat.scalar_type(), at::kFloat);
      EXPECT_LT((state[u].flat.to(at::kDouble) - oracle[u]).abs().max().item<double>(), 2e-6);
      EXPECT_GT(oracle[u].abs().max().item<double>(), 0.1);
    }
  }
}

TEST(WeightAverage, OfWeightsThatStandStillIsThoseWeights) {
  Averaged run(at::kFloat, UnitUse::kTrain, kAll);
  run.take(random_weights());
  run.average->begin();
  for (int step = 0; step < 20000; ++step) run.average->update(0.9999);
  for (size_t u = 0; u < 2; ++u) {
    const Tensor error = (run.average->state()[u].flat - run.ranges[u].weights()).abs();
    EXPECT_LT((error / run.ranges[u].weights().abs()).max().item<double>(), 1e-5) << "drifts";
  }
}

TEST(WeightAverage, OfPartsIsThatOfTheWholeToTheBit) {
  for (const auto& [dtype, use] : kUses) {
    at::manual_seed(4);
    Averaged whole(dtype, use, kAll);
    std::vector<Averaged> parts;
    parts.emplace_back(dtype, use, [](int64_t numel) { return std::pair<int64_t, int64_t>(0, numel / 3); });
    parts.emplace_back(dtype, use, [](int64_t numel) { return std::pair(numel / 3, numel / 3 + 1); });
    parts.emplace_back(dtype, use, [](int64_t numel) { return std::pair(numel / 3 + 1, numel); });
    for (int step = 0; step < 7; ++step) {
      const std::vector<Tensor> weights = random_weights();
      const auto advance = [&](Averaged& one) {
        one.take(weights);
        if (step == 0) return one.average->begin();
        one.average->update(0.9);
      };
      advance(whole);
      for (Averaged& one : parts) advance(one);
    }
    for (size_t u = 0; u < 2; ++u)
      for (Averaged& one : parts)
        EXPECT_TRUE(
            at::equal(one.average->state()[u].flat,
                      whole.average->state()[u].flat.narrow(0, one.ranges[u].begin, one.ranges[u].size())));
  }
}

TEST(WeightAverage, TakesThePlaceOfTheWeightsAndGivesItBackToTheBit) {
  for (const auto& [dtype, use] : kUses) {
    at::manual_seed(5);
    Averaged run(dtype, use, kAll);
    run.take(random_weights());
    run.average->begin();
    run.take(random_weights());
    run.average->update(0.5);
    const std::vector<Tensor> before = run.params();
    std::vector<Tensor> average, weights;
    for (size_t u = 0; u < 2; ++u) {
      average.push_back(run.average->state()[u].flat.clone());
      weights.push_back(run.ranges[u].weights().clone());
    }
    run.average->put_in_place();
    for (size_t u = 0; u < 2; ++u) {
      EXPECT_TRUE(at::equal(run.ranges[u].params, average[u].to(dtype)));
      EXPECT_FALSE(at::equal(run.ranges[u].params, before[u]));
    }
    run.average->put_back();
    for (size_t u = 0; u < 2; ++u) {
      EXPECT_TRUE(at::equal(run.ranges[u].params, before[u]));
      EXPECT_TRUE(at::equal(run.ranges[u].weights(), weights[u]));
      EXPECT_TRUE(at::equal(run.average->state()[u].flat, average[u]));
    }
  }
}

TEST(WeightAverage, LeavesFrozenParametersOut) {
  Averaged run(at::kFloat, UnitUse::kTrain, kAll, {{.match = "matrix", .freeze = true}});
  run.take(random_weights());
  run.average->begin();
  const std::vector<StateBuffer>& state = run.average->state();
  ASSERT_EQ(state.size(), 2U);
  std::vector<std::string> names;
  for (const Extent& extent : state[1].extents) names.push_back(extent.spec->name);
  EXPECT_EQ(names, (std::vector<std::string>{"norm", "out"}));
  EXPECT_EQ(state[1].flat.numel(), 37 + 45 * 61);
  EXPECT_TRUE(at::equal(state[1].flat.narrow(0, 37, 45 * 61),
                        run.ranges[1].weights().narrow(0, 37 + 61 * 45, 45 * 61)));
  const std::vector<Tensor> before = run.params();
  run.take(random_weights());
  const Tensor matrix = run.ranges[1].params.narrow(0, 37, 61 * 45).clone();
  run.average->put_in_place();
  EXPECT_TRUE(at::equal(run.ranges[1].params.narrow(0, 37, 61 * 45), matrix));
  EXPECT_TRUE(at::equal(run.ranges[1].params.narrow(0, 0, 37), before[1].narrow(0, 0, 37)));
}

}  // namespace
}  // namespace tycho
