// Ranks that own parts of units: together they do what one rank does with the whole, to the bit.
#include "trainer/optim/segments.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "tests/trainer/aten.h"
#include "tests/trainer/comm/rank_threads.h"
#include "trainer/base/error.h"
#include "trainer/layout/tp_parts.h"
#include "trainer/optim/grad_clip.h"
#include "trainer/optim/make_optimizer.h"

namespace tycho {
namespace {

std::vector<UnitSpec> parted_model() {
  UnitSpec embedding{.name = "embedding"}, block{.name = "block"}, head{.name = "head"};
  embedding.params = {{"embedding.weight", {9, 45}}};
  block.params = {
      {"norm", {37}, {}, false}, {"matrix", {61, 45}}, {"bias", {45}, {}, false}, {"out", {45, 61}}};
  head.params = {{"head.norm", {45}, {}, false}, {"head.weight", {101, 45}}};
  return {embedding, block, head};
}

/// Units of which the range [share(numel).first, share(numel).second) is owned.
struct Owner {
  using Share = std::function<std::pair<int64_t, int64_t>(int64_t numel)>;
  Owner(const OptimizerConfig& config, at::ScalarType dtype, const Share& share,
        UnitUse use = UnitUse::kTrain, const std::vector<ParamGroupConfig>& groups = {},
        Communicator* owners = nullptr)
      : rules(param_rules(config, groups, parted_model())) {
    for (const UnitSpec& spec : parted_model()) units.emplace_back(UnitLayout(spec), dtype, at::kCPU, use);
    for (const GatheredUnit& unit : units) {
      const auto [begin, end] = share(unit.layout().numel());
      ranges.push_back(own_range(unit, begin, end, use));
    }
    optimizer = make_optimizer(config, ranges, rules, 17, owners);
  }
  /// The owned elements of tensors as large as the units.
  void take(const std::vector<Tensor>& weights, const std::vector<Tensor>& grads) {
    for (size_t u = 0; u < ranges.size(); ++u) {
      const auto mine = [&](const Tensor& all) { return all.narrow(0, ranges[u].begin, ranges[u].size()); };
      if (weights.size() > u) ranges[u].master.copy_(mine(weights[u])), ranges[u].refresh_from_master();
      ranges[u].grads.copy_(mine(grads[u]));
    }
  }
  ParamRules rules;
  std::vector<GatheredUnit> units;
  std::vector<OwnedRange> ranges;
  std::unique_ptr<Optimizer> optimizer;
};

const Owner::Share kAll = [](int64_t numel) { return std::pair<int64_t, int64_t>(0, numel); };
/// Parts 0, 1 and 2 of a cut through the middle of matrices; the last two have nothing of one unit each.
Owner::Share part(size_t i) {
  return [i](int64_t numel) {
    static const std::map<int64_t, std::vector<int64_t>> cuts = {
        {405, {0, 100, 405, 405}}, {5572, {0, 1003, 5239, 5572}}, {4590, {0, 1003, 1003, 4590}}};
    return std::pair(cuts.at(numel)[i], cuts.at(numel)[i + 1]);
  };
}

const std::pair<at::ScalarType, UnitUse> kUses[] = {{at::kFloat, UnitUse::kTrain},
                                                    {at::kBFloat16, UnitUse::kTrain},
                                                    {at::kBFloat16, UnitUse::kTrainStochastic}};

std::vector<Tensor> random_flats() {
  std::vector<Tensor> flats;
  for (const UnitSpec& spec : parted_model()) flats.push_back(at::randn({spec.numel()}, at::kFloat));
  return flats;
}

template <class Kind>
class PartsTest : public testing::Test {};
using Elementwise =
    testing::Types<AdamWConfig, DecoupledAdamWConfig, LionConfig, DecoupledLionConfig, SgdConfig>;
TYPED_TEST_SUITE(PartsTest, Elementwise);

TYPED_TEST(PartsTest, StepAsTheWholeDoesToTheBit) {
  TypeParam kind;
  kind.weight_decay = 0.05;
  const OptimizerConfig config{kind};
  for (const auto& [dtype, use] : kUses) {
    at::manual_seed(3);
    Owner whole(config, dtype, kAll, use);
    std::vector<Owner> parts;
    for (size_t i = 0; i < 3; ++i) parts.emplace_back(config, dtype, part(i), use);
    const std::vector<Tensor> weights = random_flats();
    for (int64_t step = 1; step <= 3; ++step) {
      const std::vector<Tensor> grads = random_flats();
      for (Owner* owner : {&whole, &parts[0], &parts[1], &parts[2]}) {
        owner->take(step == 1 ? weights : std::vector<Tensor>{}, grads);
        owner->optimizer->step(0.02, step, at::full({1}, 0.25, at::kFloat));
      }
    }
    for (const Owner& owner : parts)
      for (size_t u = 0; u < owner.ranges.size(); ++u) {
        const OwnedRange &mine = owner.ranges[u], &all = whole.ranges[u];
        EXPECT_TRUE(at::equal(mine.master, all.master.narrow(0, mine.begin, mine.size()))) << dtype << u;
        EXPECT_TRUE(at::equal(mine.params, all.params.narrow(0, mine.begin, mine.size()))) << dtype << u;
      }
  }
}

TEST(Segments, MuonBringsTheMatricesThatRanksShareTogether) {
  const OptimizerConfig config{MuonConfig{.lr = 0.02, .weight_decay = 0.05}};
  constexpr int64_t kSteps = 3;
  for (const auto& one : kUses) {
    const auto [dtype, use] = one;
    at::manual_seed(3);
    const std::vector<Tensor> weights = random_flats();
    std::vector<std::vector<Tensor>> grads;
    for (int64_t step = 0; step < kSteps; ++step) grads.push_back(random_flats());
    const auto train = [&](Owner& owner) {
      for (int64_t step = 1; step <= kSteps; ++step) {
        owner.take(step == 1 ? weights : std::vector<Tensor>{}, grads[static_cast<size_t>(step - 1)]);
        owner.optimizer->step(0.02, step, at::full({1}, 0.25, at::kFloat));
      }
    };
    Owner whole(config, dtype, kAll, use);
    train(whole);
    expect_all_well(on_ranks(3, [&, type = dtype, as = use](Communicator& world) {
      Owner owner(config, type, part(static_cast<size_t>(world.rank())), as, {}, &world);
      train(owner);
      for (size_t u = 0; u < owner.ranges.size(); ++u) {
        const OwnedRange &mine = owner.ranges[u], &all = whole.ranges[u];
        EXPECT_TRUE(at::equal(mine.master, all.master.narrow(0, mine.begin, mine.size()))) << type << u;
        EXPECT_TRUE(at::equal(mine.params, all.params.narrow(0, mine.begin, mine.size()))) << type << u;
      }
    }));
  }
}

/// A matrix that ranks along tp cut by rows, one by columns in three sections, and a vector that all have.
UnitSpec cut_unit() {
  UnitSpec unit{.name = "block"};
  unit.params = {{"norm", {36}, {}, false}, {"rows", {24, 36}}, {"columns", {20, 24}}};
  unit.params[1].tp = {.sections = {{8, 2}, {4, 1}, {4, 1}}};
  unit.params[2].tp = {.sections = {{8, 1}, {4, 2}, {8, 1}}, .dim = 1};
  return unit;
}

/// What is here of a unit's flat buffer.
Tensor part_of(const Tensor& whole, const UnitLayout& all, const UnitLayout& here) {
  Tensor part = at::empty({here.numel()}, whole.options());
  for (size_t p = 0; p < here.extents().size(); ++p) {
    const Extent& extent = here.extents()[p];
    const Tensor from = whole.narrow(0, all.extents()[p].begin, all.extents()[p].size());
    for_whole_runs(*extent.spec, 0, extent.size(), [&](int64_t i, int64_t j, int64_t n) {
      part.narrow(0, extent.begin + i, n).copy_(from.narrow(0, j, n));
    });
  }
  return part;
}

TEST(Segments, RanksAlongTpRoundStochasticallyAsOneRank) {
  const OptimizerConfig config{AdamWConfig{.lr = 0.02}};
  at::manual_seed(4);
  const UnitLayout all(cut_unit());
  const Tensor weights = at::randn({all.numel()}, at::kFloat), grads = at::randn({all.numel()}, at::kFloat);
  const auto trained = [&](const UnitSpec& spec, const std::pair<int64_t, int64_t>& range) {
    const GatheredUnit unit(UnitLayout(spec), at::kBFloat16, at::kCPU, UnitUse::kTrainStochastic);
    std::vector<OwnedRange> ranges = {own_range(unit, range.first, range.second, UnitUse::kTrainStochastic)};
    Tensor(unit.flat_params()).copy_(part_of(weights, all, unit.layout()));
    Tensor(unit.flat_grads()).copy_(part_of(grads, all, unit.layout()));
    const auto optimizer = make_optimizer(config, ranges, param_rules(config, {}, {spec}), 17, nullptr);
    for (int64_t step = 1; step <= 3; ++step) optimizer->step(0.02, step, at::ones({1}));
    return unit.flat_params().narrow(0, range.first, range.second - range.first).clone();
  };
  const Tensor wanted = trained(cut_unit(), {0, all.numel()});
  for (const int64_t size : {2, 3, 4})
    for (int64_t rank = 0; rank < size; ++rank) {
      const UnitSpec spec = tp_units({cut_unit()}, {size, rank}).front();
      const Tensor part = part_of(wanted, all, UnitLayout(spec));
      const int64_t cut = part.numel() / 3 + 1;
      EXPECT_TRUE(at::equal(trained(spec, {0, part.numel()}), part)) << rank << " of " << size;
      EXPECT_TRUE(at::equal(trained(spec, {cut, part.numel()}), part.narrow(0, cut, part.numel() - cut)))
          << "a shard of rank " << rank << " of " << size;
    }
}

/// A unit whose first matrix has zero rows, in shards of which some cut these, against the unit without.
TEST(Segments, ZeroRowsKeepTheirZerosWhateverTheirGradients) {
  UnitSpec plain{.name = "embedding"}, padded{.name = "embedding"};
  plain.params = {{"table", {11, 8}}, {"positions", {6, 8}}};
  padded.params = plain.params;
  padded.params[0].zero_rows = 5;
  const OptimizerConfig config{AdamWConfig{.lr = 0.02}};
  const UnitLayout all(plain), room(padded);
  at::manual_seed(4);
  const Tensor weights = at::randn({all.numel()}), grads = at::randn({all.numel()});
  const auto trained = [&](const UnitSpec& spec, at::ScalarType dtype, int64_t begin, int64_t end) {
    const GatheredUnit unit(UnitLayout(spec), dtype, at::kCPU, UnitUse::kTrain);
    Tensor(unit.flat_params()).fill_(NAN);  // as memory of a GPU may be
    std::vector<OwnedRange> ranges = {own_range(unit, begin, end, UnitUse::kTrain)};
    ranges[0].grads.fill_(NAN);
    for (const Extent& e : ranges[0].extents) {
      const int64_t from = all.extents()[e.param].begin + e.first;
      ranges[0].master.narrow(0, e.begin, e.size()).copy_(weights.narrow(0, from, e.size()));
      ranges[0].grads.narrow(0, e.begin, e.size()).copy_(grads.narrow(0, from, e.size()));
    }
    ranges[0].refresh_from_master();
    const ParamRules rules = param_rules(config, {}, {spec});
    const auto optimizer = make_optimizer(config, ranges, rules, 17, nullptr);
    for (int64_t step = 1; step <= 3; ++step) optimizer->step(0.02, step, at::ones({1}));
    for (const Tensor& grad : trained_grads(ranges, rules)) EXPECT_FALSE(grad.isnan().any().item<bool>());
    return unit.flat_params().narrow(0, begin, end - begin).clone();
  };
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const Tensor wanted = trained(plain, dtype, 0, all.numel());
    Tensor whole = at::zeros({room.numel()}, wanted.options());
    for (size_t i = 0; i < 2; ++i)
      whole.narrow(0, room.extents()[i].begin, room.extents()[i].size())
          .copy_(wanted.narrow(0, all.extents()[i].begin, all.extents()[i].size()));
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 176}, {0, 96}, {96, 176}, {90, 120}})
      EXPECT_TRUE(at::equal(trained(padded, dtype, begin, end), whole.narrow(0, begin, end - begin)))
          << begin << " to " << end;
  }
}

TEST(Segments, StateOfAPartIsTheStateOfItsElements) {
  Owner owner(OptimizerConfig{AdamWConfig{}}, at::kFloat, part(0), UnitUse::kTrain, {{"norm", true}});
  std::string text;
  for (const StateBuffer& buffer : owner.optimizer->state()) {
    text += buffer.name;
    for (const Extent& e : buffer.extents)
      text += fmt::format(" {}[{}..{}] at {}", e.spec->name, e.first, e.first + e.size(), e.begin);
    text += "; ";
  }
  EXPECT_EQ(
      text,
      "exp_avg embedding.weight[0..100] at 0; exp_avg matrix[0..966] at 0; exp_avg head.weight[0..958] at "
      "0; exp_avg_sq embedding.weight[0..100] at 0; exp_avg_sq matrix[0..966] at 0; exp_avg_sq "
      "head.weight[0..958] at 0; ");
}

TEST(Segments, TrainedGradientsOfPartsAreThoseOfTheWholeOnce) {
  const std::vector<ParamGroupConfig> groups = {{"^(matrix|head\\.norm)$", true}};
  Owner whole(OptimizerConfig{AdamWConfig{}}, at::kFloat, kAll, UnitUse::kTrain, groups);
  std::vector<Tensor> grads;
  for (const UnitSpec& spec : parted_model()) grads.push_back(at::arange(1, spec.numel() + 1).to(at::kFloat));
  whole.take({}, grads);
  const double wanted = sum_of_squares(trained_grads(whole.ranges, whole.rules)).item<double>();
  double sum = 0;
  for (size_t i = 0; i < 3; ++i) {
    Owner owner(OptimizerConfig{AdamWConfig{}}, at::kFloat, part(i), UnitUse::kTrain, groups);
    owner.take({}, grads);
    sum += sum_of_squares(trained_grads(owner.ranges, owner.rules)).item<double>();
  }
  EXPECT_EQ(sum, wanted);  // of whole numbers: exact in fp64, in any order
  Owner nothing(OptimizerConfig{AdamWConfig{}}, at::kFloat,
                [](int64_t numel) { return std::pair(numel, numel); });
  EXPECT_EQ(sum_of_squares(trained_grads(nothing.ranges, nothing.rules)).item<double>(), 0);
  nothing.optimizer->step(0.1, 1, at::ones({1}));
}

std::string refusal(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Segments, RefuseAPartWhereTheUpdateNeedsTheWhole) {
  EXPECT_EQ(refusal([] { Owner(OptimizerConfig{MuonConfig{}}, at::kFloat, part(0)); }),
            "[optim] muon needs all of matrix, and this rank owns elements 0 to 966");
  // Matrices that are frozen, or that are whole in the part, are no reason.
  EXPECT_EQ(refusal([] {
              Owner(OptimizerConfig{MuonConfig{}}, at::kFloat, part(0), UnitUse::kTrain,
                    {{"^(matrix|head\\.weight)$", true}});
            }),
            "");
}

}  // namespace
}  // namespace tycho
