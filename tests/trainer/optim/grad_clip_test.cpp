// The norm over all flat buffers, and the factor that clips to it.
#include "trainer/optim/grad_clip.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

/// Gradients of two units, of the norm 5 together.
std::vector<Tensor> grads_of_norm_five() { return {at::tensor({1.0f, 2.0f}), at::tensor({-4.0f, 2.0f})}; }

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
  const GradNorm norm = clip_gradients({.norm = 1.0}, grads);
  EXPECT_EQ(norm.norm_1.item<float>(), 5);
  EXPECT_NEAR(norm.scale_1.item<float>(), 0.2, 1e-6);
  EXPECT_EQ(norm.norm_1.scalar_type(), at::kFloat);
  EXPECT_EQ(norm.scale_1.scalar_type(), at::kFloat);
  EXPECT_EQ(grads[1][0].item<float>(), -4) << "the optimizer scales, not the clip";
}

TEST(GradClipTest, LeavesWhatIsBelowTheNormAndEverythingWhenItIsOff) {
  EXPECT_EQ(clip_gradients({.norm = 5.1}, grads_of_norm_five()).scale_1.item<float>(), 1);
  EXPECT_EQ(clip_gradients({.norm = 0}, grads_of_norm_five()).scale_1.item<float>(), 1);
}

TEST(GradClipTest, ScalesNothingByTheNormBesideAnotherWay) {
  EXPECT_EQ(clip_gradients({.norm = 1, .value = 2}, grads_of_norm_five()).scale_1.item<float>(), 1);
  EXPECT_EQ(clip_gradients({.norm = 1, .adaptive = 2}, grads_of_norm_five()).norm_1.item<float>(), 5);
}

/// Weights and gradients as composer_clipping.py had them, in one unit of fp32 or of bf16 with master
/// weights.
struct ClipRig {
  ClipRig(const Json& given, at::ScalarType dtype) {
    UnitSpec unit{.name = "block"};
    for (const auto& [name, one] : given.items())
      unit.params.push_back({name, one["shape"].get<Shape>(), {}, true});
    specs.push_back(unit);
    units = make_units(specs, dtype, at::kCPU, FlatUnit::Use::kTrain);
    for (const auto& [name, one] : given.items()) {
      fill(name, units[0].flat_master(), one["weights"]);
      fill(name, units[0].flat_grads(), one["gradients"]);
    }
    rules = param_rules(OptimizerConfig{}, {}, specs);
  }
  Tensor part(const std::string& name, const Tensor& flat) const {
    for (const Extent& e : units[0].extents())
      if (e.spec->name == name) return flat.narrow(0, e.begin, e.end - e.begin);
    return {};
  }
  void fill(const std::string& name, const Tensor& flat, const Json& values) const {
    part(name, flat).copy_(at::tensor(values.get<std::vector<double>>()));
  }
  std::vector<UnitSpec> specs;
  std::vector<FlatUnit> units;
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
      clip_in_place(clip, rig.units, rig.rules);
      for (const auto& [name, wanted] : one["gradients"].items()) {
        const Tensor found = rig.part(name, rig.units[0].flat_grads());
        for (int64_t i = 0; i < found.size(0); ++i)
          EXPECT_NEAR(found[i].item<double>(), wanted[static_cast<size_t>(i)].get<double>(), 1e-6)
              << one["clip"] << " " << name << " " << i;
      }
    }
}

TEST(GradClipTest, LeavesFrozenGradientsAlone) {
  const Json given = {{"a", {{"shape", {2}}, {"weights", {1, 1}}, {"gradients", {5, -5}}}}};
  ClipRig rig(given, at::kFloat);
  rig.rules[0][0].frozen = true;
  clip_in_place({.value = 1.0}, rig.units, rig.rules);
  EXPECT_EQ(rig.part("a", rig.units[0].flat_grads())[0].item<float>(), 5);
}

}  // namespace
}  // namespace tycho
