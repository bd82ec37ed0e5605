// Every optimizer against torch.optim, Composer and Muon's formula; groups, freezing, clipping.
#include "trainer/optim/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json_reader.h"
#include "trainer/optim/grad_clip.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/optim/newton_schulz.h"
#include "trainer/optim/segments.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {
namespace {

const Json& golden() {
  static const Json json = [] {
    const char* source = std::getenv("TYCHO_SOURCE_DIR");
    const std::string path =
        std::string(source == nullptr ? "." : source) + "/tests/golden/optim/trajectories.json";
    return parse_json(read_file(path), path);
  }();
  return json;
}

Tensor numbers(const Json& list) {
  return at::tensor(list.get<std::vector<double>>(), at::TensorOptions().dtype(at::kDouble));
}

/// Embedding, a block with the parameters of the golden trajectories, head.
std::vector<UnitSpec> model() {
  UnitSpec embedding{.name = "embedding"}, block{.name = "block"}, head{.name = "head"};
  embedding.params = {{"embedding.weight", {6, 4}, {}}};
  block.params = {{"matrix", golden()["shapes"]["matrix"], {}, true},
                  {"norm", golden()["shapes"]["norm"], {}, false},
                  {"tall", golden()["shapes"]["tall"], {}, true}};
  head.params = {{"head.norm", {4}, {}, false}, {"head.weight", {6, 4}, {}}};
  return {embedding, block, head};
}

OptimizerConfig read_optimizer(const Json& json) {
  OptimizerConfig config;
  std::vector<ConfigProblem> problems;
  read_value(JsonPath{json, "optimizer", problems}, Rule{}, config);
  EXPECT_TRUE(problems.empty()) << problems.front().path << ": " << problems.front().message;
  return config;
}

/// Units with seeded weights and gradients, their optimizer, and steps.
struct Rig {
  explicit Rig(const OptimizerConfig& config, const std::vector<ParamGroupConfig>& groups = {},
               at::ScalarType dtype = at::kFloat, UnitUse use = UnitUse::kTrain)
      : units(model(), dtype, at::kCPU, use),
        rules(param_rules(config, groups, model())),
        optimizer(make_optimizer(config, units.owned(), rules, 17)) {
    at::manual_seed(5);
    for (OwnedRange& range : units.owned()) {
      range.master.normal_();
      range.refresh_from_master();
    }
  }
  OwnedRange& owned(size_t unit) { return units.owned()[unit]; }
  Tensor weight(size_t unit, size_t param) {
    const Extent& e = owned(unit).extents[param];
    return owned(unit).master.narrow(0, e.begin, e.size());
  }
  void step(int64_t step, double lr = 0.02, double scale = 1.0) {
    at::manual_seed(100 + static_cast<uint64_t>(step));
    for (OwnedRange& range : units.owned()) range.grads.normal_();
    optimizer->step(lr, step, at::full({1}, scale, at::kFloat));
  }
  LocalUnits units;
  ParamRules rules;
  std::unique_ptr<Optimizer> optimizer;
};

constexpr double kFp32AgainstDouble = 2e-6;

/// How far rounding moves a matrix that Muon updates, after so many steps of a golden trajectory: an entry of
/// an orthogonalised matrix comes out up to 48 units off (of 3,000 draws of these shapes, five iterations;
/// 11 in the middle), in whichever dtype the machine iterates, and the rates of the steps add up.
double muon_rounding(const Json& optimizer, const std::string& name, int64_t step) {
  if (optimizer["kind"] != "muon" || name == "norm") return 0;
  const double unit = newton_schulz_dtype(at::kCPU) == at::kFloat ? 0x1p-24 : 0x1p-9;
  const auto shape = golden()["shapes"][name].get<std::vector<double>>();
  const double scale = optimizer["adjust_lr"] == "original" ? std::sqrt(std::max(1.0, shape[0] / shape[1]))
                                                            : 0.2 * std::sqrt(std::max(shape[0], shape[1]));
  double rates = 0;
  for (int64_t i = 0; i < step; ++i)
    rates += 0.02 * golden()["factors"][static_cast<size_t>(i)].get<double>();
  return 100 * unit * scale * rates;
}

class TrajectoryTest : public testing::TestWithParam<at::ScalarType> {};

TEST_P(TrajectoryTest, EqualsTheReferenceAfterOneAndTwentySteps) {
  const std::vector<std::string> names = {"matrix", "norm", "tall"};
  for (const Json& one : golden()["cases"]) {
    Rig rig(read_optimizer(one["optimizer"]), {}, GetParam());
    for (size_t i = 0; i < names.size(); ++i) rig.weight(1, i).copy_(numbers(golden()["weights"][names[i]]));
    for (int64_t step = 1; step <= 20; ++step) {
      const auto index = static_cast<size_t>(step - 1);
      for (OwnedRange& range : rig.units.owned()) range.grads.normal_();
      for (size_t i = 0; i < names.size(); ++i) {
        const Extent& e = rig.owned(1).extents[i];
        rig.owned(1)
            .grads.narrow(0, e.begin, e.size())
            .copy_(numbers(golden()["grads"][index][names[i]]) * 4);
      }
      const double lr = 0.02 * golden()["factors"][index].get<double>();
      rig.optimizer->step(lr, step, at::full({1}, 0.25, at::kFloat));
      const auto wanted = one["after"].find(std::to_string(step));
      if (wanted == one["after"].end()) continue;
      for (size_t i = 0; i < names.size(); ++i) {
        const double tolerance = kFp32AgainstDouble + muon_rounding(one["optimizer"], names[i], step);
        EXPECT_TRUE(at::allclose(rig.weight(1, i).to(at::kDouble), numbers((*wanted)[names[i]]),
                                 kFp32AgainstDouble, tolerance))
            << one["name"] << ", " << names[i] << " after " << step << ", by "
            << (rig.weight(1, i).to(at::kDouble) - numbers((*wanted)[names[i]])).abs().max().item<double>();
      }
    }
    for (const OwnedRange& range : rig.units.owned())
      EXPECT_TRUE(at::equal(range.params, range.master.to(GetParam()))) << one["name"];
  }
}
INSTANTIATE_TEST_SUITE_P(Dtypes, TrajectoryTest, testing::Values(at::kFloat, at::kBFloat16));

std::string state_text(const Rig& rig) {
  std::string text;
  for (const StateBuffer& buffer : rig.optimizer->state()) {
    text += buffer.name;
    for (const Extent& e : buffer.extents) text += " " + e.spec->name;
    text += "; ";
  }
  return text;
}

TEST(OptimizerTest, StateIsNamedAsTheReferencesNameItAndOnlyWhereItIsNeeded) {
  EXPECT_EQ(state_text(Rig(OptimizerConfig{AdamWConfig{}}, {{"norm", true}, {"embedding", true}})),
            "exp_avg matrix tall; exp_avg head.weight; exp_avg_sq matrix tall; exp_avg_sq head.weight; ");
  EXPECT_EQ(state_text(Rig(OptimizerConfig{LionConfig{}}, {{"head|embedding", true}})),
            "exp_avg matrix norm tall; ");
  EXPECT_EQ(state_text(Rig(OptimizerConfig{SgdConfig{}})), "");
  EXPECT_EQ(state_text(Rig(OptimizerConfig{SgdConfig{.momentum = 0.9}}, {{"head|embedding", true}})),
            "momentum_buffer matrix norm tall; ");
  EXPECT_EQ(state_text(Rig(OptimizerConfig{MuonConfig{}}, {{"head", true}})),
            "exp_avg embedding.weight; exp_avg norm; exp_avg_sq embedding.weight; exp_avg_sq norm; "
            "momentum_buffer matrix tall; ");
}

template <class Kind>
class FreezeTest : public testing::Test {};
using AllKinds =
    testing::Types<AdamWConfig, DecoupledAdamWConfig, LionConfig, DecoupledLionConfig, SgdConfig, MuonConfig>;
TYPED_TEST_SUITE(FreezeTest, AllKinds);

TYPED_TEST(FreezeTest, FrozenParametersKeepTheirBitsAndTheOthersDoNotNotice) {
  TypeParam kind;
  kind.weight_decay = 0.05;
  Rig all(OptimizerConfig{kind}), some(OptimizerConfig{kind}, {{"^(matrix|norm|head\\.weight)$", true}});
  const Tensor before = some.owned(1).params.clone();
  const Tensor head_before = some.weight(2, 1).clone();
  for (int64_t step = 1; step <= 3; ++step) all.step(step), some.step(step);
  const int64_t frozen = some.owned(1).extents[1].end;
  EXPECT_TRUE(at::equal(some.owned(1).params.narrow(0, 0, frozen), before.narrow(0, 0, frozen)));
  EXPECT_TRUE(at::equal(some.weight(2, 1), head_before));
  EXPECT_TRUE(at::equal(some.weight(1, 2), all.weight(1, 2)));
  EXPECT_TRUE(at::equal(some.weight(2, 0), all.weight(2, 0)));
  EXPECT_FALSE(at::equal(some.weight(1, 2), Rig(OptimizerConfig{kind}).weight(1, 2)));
}

TEST(OptimizerTest, GroupsSetRateDecayAndBetas) {
  AdamWConfig adamw{.lr = 0.02, .weight_decay = 0.1};
  ParamGroupConfig own_rate{.match = "^matrix$"};
  own_rate.lr = 0.04;
  ParamGroupConfig own_decay{.match = "^norm$"};
  own_decay.weight_decay = 0.1, own_decay.lr_scale = 0.5, own_decay.betas = {{0.5, 0.6}};
  Rig grouped(OptimizerConfig{adamw}, {own_rate, own_decay});
  AdamWConfig fast = adamw, slow = adamw;
  fast.lr = 0.04;
  slow.lr = 0.01, slow.betas = {0.5, 0.6}, slow.decay_mask = DecayMask::kAll;
  Rig plain{OptimizerConfig{adamw}}, faster{OptimizerConfig{fast}}, slower{OptimizerConfig{slow}};
  for (int64_t step = 1; step <= 4; ++step) {
    grouped.step(step, 0.02), plain.step(step, 0.02), faster.step(step, 0.04), slower.step(step, 0.01);
  }
  EXPECT_TRUE(at::equal(grouped.weight(1, 0), faster.weight(1, 0)));
  EXPECT_TRUE(at::equal(grouped.weight(1, 1), slower.weight(1, 1)));
  EXPECT_TRUE(at::equal(grouped.weight(1, 2), plain.weight(1, 2)));
}

TEST(OptimizerTest, ARateOfZeroChangesNoWeight) {
  for (const Json& one : golden()["cases"]) {
    Rig rig(read_optimizer(one["optimizer"]));
    const Tensor before = rig.owned(1).params.clone();
    rig.step(1, 0.0);
    EXPECT_TRUE(at::equal(rig.owned(1).params, before)) << one["name"];
  }
}

TEST(OptimizerTest, StochasticRoundingFollowsFp32OnAverageAndRepeats) {
  // Steps far below half a unit in the last place: rounding to nearest would stand still.
  const OptimizerConfig sgd{SgdConfig{.lr = 1e-4}};
  const auto run = [&](UnitUse use) {
    auto rig = std::make_unique<Rig>(sgd, std::vector<ParamGroupConfig>{}, at::kBFloat16, use);
    for (OwnedRange& range : rig->units.owned()) range.master.fill_(1), range.grads.fill_(1);
    for (int64_t step = 1; step <= 500; ++step) rig->optimizer->step(1e-4, step, at::ones({1}));
    return rig;
  };
  const auto nearest = run(UnitUse::kTrainInPlace), stochastic = run(UnitUse::kTrainStochastic);
  EXPECT_EQ(nearest->owned(1).params.min().item<float>(), 1);
  EXPECT_NEAR(stochastic->owned(1).params.to(at::kDouble).mean().item<double>(), 0.95, 5e-3);
  EXPECT_FALSE(at::equal(stochastic->owned(0).params, stochastic->weight(2, 1)));
  const auto again = run(UnitUse::kTrainStochastic);
  for (size_t i = 0; i < again->units.owned().size(); ++i)
    EXPECT_TRUE(at::equal(again->owned(i).params, stochastic->owned(i).params));
}

TEST(GradClipTest, ScalesOnlyWhatIsTooLong) {
  LocalUnits units(model(), at::kFloat, at::kCPU, UnitUse::kTrain);
  for (OwnedRange& range : units.owned()) range.grads.fill_(2);
  const OptimizerConfig adamw;
  const auto clip = [&](double most, const std::vector<ParamGroupConfig>& groups = {}) {
    return clip_gradients({most}, trained_grads(units.owned(), param_rules(adamw, groups, model())),
                          *make_world_of_one());
  };
  const double norm = std::sqrt((24 + 40 + 7 + 36 + 4 + 24) * 4.0);
  EXPECT_NEAR(clip(1.5).norm_1.item<float>(), norm, 1e-5);
  EXPECT_NEAR(clip(1.5).scale_1.item<float>(), 1.5 / norm, 1e-6);
  EXPECT_EQ(clip(100).scale_1.item<float>(), 1);
  EXPECT_EQ(clip(0).scale_1.item<float>(), 1);
  EXPECT_NEAR(clip(0, {{"norm|weight", true}}).norm_1.item<float>(), std::sqrt((40 + 36) * 4.0), 1e-5);
}

}  // namespace
}  // namespace tycho
