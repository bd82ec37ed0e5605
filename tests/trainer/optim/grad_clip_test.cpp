// The norm over all flat buffers, and the factor that clips to it.
#include "trainer/optim/grad_clip.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "tests/trainer/aten.h"
#include "tests/trainer/comm/rank_threads.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {
namespace {

/// Gradients of two units, of the norm 5 together.
std::vector<Tensor> grads_of_norm_five() { return {at::tensor({1.0f, 2.0f}), at::tensor({-4.0f, 2.0f})}; }

const std::unique_ptr<Communicator> alone = make_world_of_one();

TEST(SumOfSquaresTest, RunsOverAllBuffersOfEitherDtype) {
  const Tensor sum_1 = sum_of_squares({at::full({1000}, 0.5f), at::full({3}, -2.0f).to(at::kBFloat16)});
  EXPECT_EQ(sum_1.scalar_type(), at::kDouble);
  EXPECT_EQ(sum_1.sizes(), (std::vector<int64_t>{1}));
  EXPECT_EQ(sum_1.item<double>(), 1000 * 0.25 + 3 * 4);
}

TEST(SumOfSquaresTest, IsNotFiniteWhenOneNumberIsNotAndFiniteForTheLargest) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {inf, -inf, nan}) {
    std::vector<Tensor> flats = {at::ones({40}), at::ones({41})};
    flats.back()[40] = bad;
    EXPECT_FALSE(std::isfinite(sum_of_squares(flats).item<double>())) << bad;
  }
  const Tensor largest = at::full({1000}, std::numeric_limits<float>::max());
  EXPECT_TRUE(std::isfinite(sum_of_squares({largest}).item<double>()));
}

TEST(GradClipTest, ScalesWhatIsAboveTheNormDownToIt) {
  const std::vector<Tensor> grads = grads_of_norm_five();
  const GradNorm norm = clip_gradients({.norm = 1.0}, grads, *alone);
  EXPECT_EQ(norm.norm_1.item<float>(), 5);
  EXPECT_NEAR(norm.scale_1.item<float>(), 0.2, 1e-6);
  EXPECT_EQ(norm.norm_1.scalar_type(), at::kFloat);
  EXPECT_EQ(norm.scale_1.scalar_type(), at::kFloat);
  EXPECT_EQ(grads[1][0].item<float>(), -4) << "the optimizer scales, not the clip";
}

TEST(GradClipTest, LeavesWhatIsBelowTheNormAndEverythingWhenItIsOff) {
  EXPECT_EQ(clip_gradients({.norm = 5.1}, grads_of_norm_five(), *alone).scale_1.item<float>(), 1);
  EXPECT_EQ(clip_gradients({.norm = 0}, grads_of_norm_five(), *alone).scale_1.item<float>(), 1);
}

TEST(GradClipTest, DoesNotScaleByTheNormWhenClippingAnotherWay) {
  EXPECT_EQ(clip_gradients({.norm = 1, .value = 2}, grads_of_norm_five(), *alone).scale_1.item<float>(), 1);
  EXPECT_EQ(clip_gradients({.norm = 1, .adaptive = 2}, grads_of_norm_five(), *alone).norm_1.item<float>(), 5);
}

TEST(GradClipTest, SumsOverTheRanksThatShareTheGradientsOut) {
  const Tensor all = at::arange(-30, 70).to(at::kFloat);
  const GradNorm whole = clip_gradients({.norm = 2.5}, {all}, *alone);
  EXPECT_EQ(whole.norm_1.item<float>(),
            static_cast<float>(std::sqrt(all.square().sum(at::kDouble).item<double>())));
  expect_all_well(on_ranks(2, [&](Communicator& world) {
    const int64_t begin = world.rank() * 37, end = world.rank() == 0 ? 37 : 100;
    const GradNorm part = clip_gradients({.norm = 2.5}, {all.narrow(0, begin, end - begin)}, world);
    EXPECT_TRUE(at::equal(part.norm_1, whole.norm_1)) << world.rank();
    EXPECT_TRUE(at::equal(part.scale_1, whole.scale_1)) << world.rank();
    // Whole replicas: each rank passes the world of one, and nothing is added.
    const GradNorm replica = clip_gradients({.norm = 2.5}, {all}, *make_world_of_one());
    EXPECT_TRUE(at::equal(replica.norm_1, whole.norm_1)) << world.rank();
    // A rank that owns nothing joins in.
    const Tensor mine = world.rank() == 0 ? all : at::empty({0});
    EXPECT_TRUE(at::equal(clip_gradients({.norm = 2.5}, {mine}, world).scale_1, whole.scale_1));
  }));
}

TEST(GradClipTest, IsExactWhoeverHasTheGradientsWhenAskedTo) {
  at::manual_seed(9);
  const Tensor all = at::randn({4000}) * at::randn({4000}).mul_(9).exp_();
  const GradNorm whole = clip_gradients({.norm = 2.5}, {all}, *alone, SquareSum::kExact);
  EXPECT_NEAR(whole.norm_1.item<float>() / all.to(at::kDouble).norm().item<double>(), 1, 1e-7);
  expect_all_well(on_ranks(4, [&](Communicator& world) {
    const Tensor own = all.narrow(0, world.rank() * 1000, 1000);
    for (const std::vector<Tensor>& parts :
         {std::vector<Tensor>{own}, {own.narrow(0, 31, 969), own.narrow(0, 0, 31)}}) {
      const GradNorm norm = clip_gradients({.norm = 2.5}, parts, world, SquareSum::kExact);
      EXPECT_TRUE(at::equal(norm.norm_1, whole.norm_1));
      EXPECT_TRUE(at::equal(norm.scale_1, whole.scale_1));
    }
  }));
}

/// Weights and gradients as composer_clipping.py had them, in one unit of fp32 or of bf16 with master
/// weights.
struct ClipRig {
  ClipRig(const Json& given, at::ScalarType dtype) {
    UnitSpec unit{.name = "block"};
    for (const auto& [name, one] : given.items())
      unit.params.push_back({name, one["shape"].get<Shape>(), {}, true});
    specs.push_back(unit);
    units = std::make_unique<LocalUnits>(specs, dtype, at::kCPU, UnitUse::kTrain);
    for (const auto& [name, one] : given.items()) {
      fill(name, owned().master, one["weights"]);
      fill(name, owned().grads, one["gradients"]);
    }
    rules = param_rules(OptimizerConfig{}, {}, specs);
  }
  const OwnedRange& owned() const { return units->owned()[0]; }
  Tensor part(const std::string& name, const Tensor& flat) const {
    for (const Extent& e : owned().extents)
      if (e.spec->name == name) return flat.narrow(0, e.begin, e.size());
    return {};
  }
  void fill(const std::string& name, const Tensor& flat, const Json& values) const {
    part(name, flat).copy_(at::tensor(values.get<std::vector<double>>()));
  }
  std::vector<UnitSpec> specs;
  std::unique_ptr<LocalUnits> units;
  ParamRules rules;
};

TEST(GradClipTest, EqualsComposersByValueAndAdaptively) {
  const char* source = std::getenv("TYCHO_SOURCE_DIR");
  const std::string path =
      std::string(source == nullptr ? "." : source) + "/tests/golden/optim/clipping.json";
  const Json golden = parse_json(read_file(path), path);
  EXPECT_EQ(golden["cases"].size(), 5u);
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const Json& one : golden["cases"]) {
      ClipRig rig(golden["parameters"], dtype);
      ClipConfig clip;
      if (one["clip"].contains("value")) clip.value = one["clip"]["value"];
      if (one["clip"].contains("adaptive")) clip.adaptive = one["clip"]["adaptive"];
      clip_in_place(clip, rig.units->owned(), rig.rules, *alone);
      for (const auto& [name, wanted] : one["gradients"].items()) {
        const Tensor found = rig.part(name, rig.owned().grads);
        for (int64_t i = 0; i < found.size(0); ++i)
          EXPECT_NEAR(found[i].item<double>(), wanted[static_cast<size_t>(i)].get<double>(), 1e-6)
              << one["clip"] << " " << name << " " << i;
      }
    }
}

TEST(GradClipTest, ClipsPartsByValue) {
  UnitSpec spec{.name = "block"};
  spec.params = {{"a", {2, 3}}, {"b", {4}}};
  const ParamRules rules = param_rules(OptimizerConfig{}, {}, {spec});
  const GatheredUnit unit(UnitLayout(spec), at::kFloat, at::kCPU, UnitUse::kTrain);
  Tensor(unit.flat_grads()).fill_(5);
  clip_in_place({.value = 1.0}, {own_range(unit, 2, 8, UnitUse::kTrain)}, rules, *alone);
  EXPECT_TRUE(at::equal(unit.flat_grads(), at::tensor({5.f, 5.f, 1.f, 1.f, 1.f, 1.f, 1.f, 1.f, 5.f, 5.f})));
}

TEST(GradClipTest, ClipsRowsThatRanksShareAsIfTheyWereWhole) {
  std::vector<UnitSpec> specs(2, {.name = "block"});
  specs[0].params = {{"a", {5, 7}}, {"b", {9}}, {"c", {1, 30}}};
  specs[1].params = {{"d", {20, 2}}, {"e", {3}}};
  const ParamRules rules = param_rules(OptimizerConfig{}, {}, specs);
  const auto make_units = [&] {
    std::vector<GatheredUnit> units;
    for (const UnitSpec& spec : specs) {
      units.emplace_back(UnitLayout(spec), at::kFloat, at::kCPU, UnitUse::kTrain);
      const int64_t n = units.back().layout().numel();
      Tensor(units.back().flat_params()).copy_(at::arange(n).add(1).sin());
      Tensor(units.back().flat_grads()).copy_(at::arange(n).mul(0.7).cos());
      Tensor(units.back().flat_grads()).narrow(0, 0, 7).zero_();
    }
    return units;
  };
  const std::vector<GatheredUnit> whole = make_units();
  clip_in_place({.adaptive = 0.3}, {own_unit(whole[0], UnitUse::kTrain), own_unit(whole[1], UnitUse::kTrain)},
                rules, *alone);
  for (const int num_ranks : {2, 3})
    expect_all_well(on_ranks(num_ranks, [&](Communicator& world) {
      const std::vector<GatheredUnit> units = make_units();
      std::vector<OwnedRange> ranges;
      for (const GatheredUnit& unit : units) {
        const auto range = shard_range(unit.layout().numel(), world.size(), world.rank());
        ranges.push_back(own_range(unit, range.begin, range.end, UnitUse::kTrain));
      }
      clip_in_place({.adaptive = 0.3}, ranges, rules, world);
      for (size_t u = 0; u < units.size(); ++u) {
        const int64_t begin = ranges[u].begin, size = ranges[u].size();
        EXPECT_TRUE(at::allclose(units[u].flat_grads().narrow(0, begin, size),
                                 whole[u].flat_grads().narrow(0, begin, size), 1e-6, 1e-9))
            << num_ranks << " ranks, unit " << u;
      }
    }));
}

TEST(GradClipTest, LeavesFrozenGradientsAlone) {
  const Json given = {{"a", {{"shape", {2}}, {"weights", {1, 1}}, {"gradients", {5, -5}}}}};
  ClipRig rig(given, at::kFloat);
  rig.rules[0][0].frozen = true;
  clip_in_place({.value = 1.0}, rig.units->owned(), rig.rules, *alone);
  EXPECT_EQ(rig.part("a", rig.owned().grads)[0].item<float>(), 5);
}

}  // namespace
}  // namespace tycho
