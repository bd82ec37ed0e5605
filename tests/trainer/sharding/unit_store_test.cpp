// Where units' bytes are, and when gradients are summed over ranks.
#include "trainer/sharding/unit_store.h"

#include <gtest/gtest.h>

#include "tests/trainer/aten.h"
#include "tests/trainer/comm/rank_threads.h"

namespace tycho {
namespace {

std::vector<UnitSpec> two_units() {
  UnitSpec first{.name = "first"}, second{.name = "second"};
  first.params = {{"first.a", {5, 7}}, {"first.b", {3}}};
  second.params = {{"second.a", {40}}};
  return {first, second};
}

UnitGroups groups_of(Communicator& owners, Communicator& replicas) {
  return {[&](const UnitSpec&) -> UnitGroup { return {owners, replicas}; }};
}

TEST(UnitStore, OwnsWholeUnitsAloneWhereEveryRankHasAll) {
  expect_all_well(on_ranks(2, [](Communicator& world) {
    const auto alone = make_world_of_one();
    const auto units =
        make_unit_store(two_units(), at::kBFloat16, at::kCPU, UnitUse::kTrain, {}, groups_of(*alone, world));
    ASSERT_EQ(units->owned().size(), 2u);
    EXPECT_EQ(units->owned()[0].size(), units->layout(0).numel());
    EXPECT_EQ(units->owned()[1].size(), 40);
    units->owned()[1].master.fill_(3);
    units->owned()[1].refresh_from_master();
    EXPECT_EQ(units->acquire(1, Pass::kForward)[0].sum().item<float>(), 120);
    units->release(1, Pass::kForward);
  }));
}

TEST(UnitStore, ReplicasSumGradientsAfterTheLastMicroBatchOnly) {
  expect_all_well(on_ranks(2, [](Communicator& world) {
    const auto alone = make_world_of_one();
    const auto units =
        make_unit_store(two_units(), at::kFloat, at::kCPU, UnitUse::kTrain, {}, groups_of(*alone, world));
    for (int micro = 0; micro < 3; ++micro) {
      for (int unit = 1; unit >= 0; --unit) {
        for (Tensor& grad : units->grads(unit)) grad.add_(world.rank() + 1);
        // Ranks would add up each other's sums again if the first calls did anything.
        units->reduce(unit, /*last=*/micro == 2);
      }
    }
    units->finish();
    for (const OwnedRange& range : units->owned())
      EXPECT_TRUE(at::equal(range.grads, at::full_like(range.grads, 3 * (1 + 2)))) << world.rank();
  }));
}

// Experts that differ along dp_shard have gradients of fewer ranks than what all ranks share.
TEST(UnitStore, SumsEachUnitOverItsOwnGroup) {
  expect_all_well(on_ranks(4, [](Communicator& world) {
    const auto alone = make_world_of_one(), pair = world.split(world.rank() / 2, world.rank()),
               copies = world.split(world.rank() % 2, world.rank());
    const UnitGroups sharded = {[&](const UnitSpec& unit) -> UnitGroup {
      return {unit.name == "first" ? *pair : *alone, *copies};
    }};
    const UnitGroups whole = {[&](const UnitSpec& unit) -> UnitGroup {
      return {*alone, unit.name == "first" ? world : *copies};
    }};
    const float all = 1 + 2 + 3 + 4, own = static_cast<float>(2 * (world.rank() % 2) + 1 + 3);
    for (const bool is_sharded : {true, false}) {
      const auto units = make_unit_store(two_units(), at::kFloat, at::kCPU, UnitUse::kTrain,
                                         {.num_ranks = is_sharded ? 2 : 1}, is_sharded ? sharded : whole);
      EXPECT_EQ(units->owned()[1].size(), 40);
      for (OwnedRange& range : units->owned()) Tensor(range.params).fill_(world.rank() + 1);
      const int first = is_sharded ? world.rank() / 2 * 2 + 1 : world.rank() + 1;
      for (const int unit : {0, 1}) {
        const float sum = units->acquire(unit, Pass::kForward)[0].sum().item<float>();
        EXPECT_EQ(sum, unit == 1    ? 40 * (world.rank() + 1)
                       : is_sharded ? 32 * first + 3 * (first + 1)
                                    : 35 * first);
        units->release(unit, Pass::kForward);
      }
      for (const int unit : {1, 0}) {
        for (Tensor& grad : units->grads(unit)) grad.fill_(world.rank() + 1);
        units->reduce(unit, /*last=*/true);
      }
      units->finish();
      for (const int unit : {0, 1}) {
        const Tensor& grads = units->owned()[static_cast<size_t>(unit)].grads;
        EXPECT_TRUE(at::equal(grads, at::full_like(grads, unit == 0 ? all : own))) << unit << is_sharded;
        EXPECT_EQ(units->grad(unit, 0).max().item<float>(), unit == 0 ? all : own);
      }
    }
  }));
}

TEST(UnitStore, OneRankKeepsItsGradients) {
  LocalUnits units(two_units(), at::kFloat, at::kCPU, UnitUse::kTrain);
  for (const bool last : {false, true}) {
    units.grads(0)[1].add_(2);
    units.reduce(0, last);
  }
  units.finish();
  EXPECT_EQ(units.owned()[0].grads.sum().item<float>(), 12);
}

TEST(UnitStore, RanksThatShareUnitsOwnPartsAndGatherTheWhole) {
  expect_all_well(on_ranks(2, [](Communicator& world) {
    const auto alone = make_world_of_one();
    const auto units = make_unit_store(two_units(), at::kBFloat16, at::kCPU, UnitUse::kTrain,
                                       {.num_ranks = 2}, groups_of(world, *alone));
    const bool first = world.rank() == 0;
    EXPECT_EQ(units->owned()[0].size(), first ? 32 : 6) << "of 38, in whole vectors";
    EXPECT_EQ(units->owned()[1].size(), first ? 32 : 8);
    EXPECT_TRUE(units->owned()[0].has_own_master());
    for (int update = 0; update < 2; ++update) {
      for (OwnedRange& range : units->owned()) {
        Tensor(range.master).fill_(world.rank() + 2 * update);
        range.refresh_from_master();
      }
      EXPECT_EQ(units->acquire(0, Pass::kForward)[0].sum().item<float>(), 3 + 35 * 2 * update);
      units->release(0, Pass::kForward);
      EXPECT_EQ(units->param(1, 0).sum().item<float>(), 8 + 40 * 2 * update);
    }
  }));
}

TEST(UnitStore, RanksThatShareUnitsKeepTheirPartsOfTheSumOfGradients) {
  for (const bool keep : {false, true})
    expect_all_well(on_ranks(4, [&](Communicator& world) {
      const auto owners = world.split(world.rank() / 2, world.rank()),
                 replicas = world.split(world.rank() % 2, world.rank());
      const auto units = make_unit_store(two_units(), at::kFloat, at::kCPU, UnitUse::kTrain,
                                         {.num_ranks = 2, .keep_grads = keep}, groups_of(*owners, *replicas));
      for (int step = 1; step < 3; ++step) {
        for (int micro = 0; micro < 3; ++micro)
          for (int unit = 1; unit >= 0; --unit) {
            for (Tensor& grad : units->grads(unit)) {
              if (micro == 0 || units->takes_gradients()) grad.zero_();  // as backward overwrites
              grad.add_(step * (world.rank() + 1));
            }
            units->reduce(unit, /*last=*/micro == 2);
          }
        units->finish();
        for (const OwnedRange& range : units->owned())
          EXPECT_TRUE(at::equal(range.grads, at::full_like(range.grads, step * 3 * (1 + 2 + 3 + 4)))) << keep;
        EXPECT_EQ(units->grad(0, 1).sum().item<float>(), 3 * step * 30);
      }
    }));
}

/// Numbers of micro-batch `leaf`, for which the order of additions matters.
Tensor leaf_of(int64_t leaf, const Tensor& like) {
  return at::arange(like.numel())
      .to(at::kFloat)
      .mul_(0.031)
      .add_(0.37 * static_cast<double>(leaf))
      .sin_()
      .view_as(like);
}

/// Backward passes of leaves [begin, begin + count), and what is owned afterwards.
void run_leaves(UnitStore& units, int64_t begin, int64_t count) {
  units.begin_step();
  for (int64_t leaf = begin; leaf < begin + count; ++leaf)
    for (int unit = 1; unit >= 0; --unit) {
      for (Tensor& grad : units.grads(unit)) grad.copy_(leaf_of(leaf, grad));
      units.reduce(unit, /*last=*/leaf + 1 == begin + count);
    }
  units.finish();
}

TEST(UnitStore, SumsMicroBatchesAsOneTreeWhoeverHasThem) {
  constexpr int64_t kLeaves = 8;
  LocalUnits one(two_units(), at::kFloat, at::kCPU, UnitUse::kTrain, {}, {.tree = {kLeaves}});
  run_leaves(one, 0, 3);  // a step that failed
  run_leaves(one, 0, kLeaves);
  const Tensor like = one.grads(1)[0];
  const auto leaf = [&](int64_t i) { return leaf_of(i, like); };
  EXPECT_TRUE(at::equal(
      like, ((leaf(0) + leaf(1)) + (leaf(2) + leaf(3))) + ((leaf(4) + leaf(5)) + (leaf(6) + leaf(7)))));
  const auto in_world = [&](int shards, std::shared_ptr<Peers> peers) {
    const auto world = make_tcp_world(std::move(peers), kSoonS, SumOrder::kTree);
    const auto owners = world->split(world->rank() / shards, world->rank()),
               replicas = world->split(world->rank() % shards, world->rank());
    const int64_t each = kLeaves / world->size();
    ShardRules rules = {.num_ranks = shards, .keep_grads = each > 1};
    rules.tree = {each};
    const auto units = make_unit_store(two_units(), at::kFloat, at::kCPU, UnitUse::kTrain, rules,
                                       groups_of(*owners, *replicas));
    for (int step = 0; step < 2; ++step) {
      run_leaves(*units, each * world->rank(), each);
      for (int unit = 0; unit < 2; ++unit)
        for (size_t i = 0; i < one.grads(unit).size(); ++i)
          EXPECT_TRUE(at::equal(units->grad(unit, i), one.grads(unit)[i]))
              << shards << " " << unit << " " << i;
    }
  };
  for (const int num_ranks : {2, 4, 8})
    for (int shards = 1; shards <= num_ranks; shards *= 2)
      expect_all_well(with_shared_peers(
          num_ranks, [&](std::shared_ptr<Peers> peers) { in_world(shards, std::move(peers)); }));
}

/// What is left of a number that travels as bf16.
float rounded(double x) { return at::full({1}, x, at::kDouble).to(at::kBFloat16).item<float>(); }

// Thirds of whole numbers: rounded by each rank, added in fp32, and rounded once more.
TEST(UnitStore, GradientsMayTravelAsBf16) {
  const auto fill = [](UnitStore& units, int rank, int micro) {
    for (int unit = 1; unit >= 0; --unit) {
      for (Tensor& grad : units.grads(unit)) {
        if (micro == 0 || units.takes_gradients()) grad.zero_();
        grad.add_((rank + 1) / 3.0);
      }
      units.reduce(unit, /*last=*/micro == 1);
    }
  };
  const auto sum_of = [](double a, double b) { return rounded(rounded(a) + rounded(b)); };
  expect_all_well(on_ranks(2, [&](Communicator& world) {
    const auto alone = make_world_of_one();
    const auto replicas = make_unit_store(two_units(), at::kFloat, at::kCPU, UnitUse::kTrain,
                                          {.reduce_bf16 = true}, groups_of(*alone, world));
    const auto shards = make_unit_store(two_units(), at::kFloat, at::kCPU, UnitUse::kTrain,
                                        {.num_ranks = 2, .reduce_bf16 = true}, groups_of(world, *alone));
    for (int step = 0; step < 2; ++step) {
      for (int micro = 0; micro < 2; ++micro) {
        fill(*replicas, world.rank(), micro);
        fill(*shards, world.rank(), micro);
      }
      replicas->finish(), shards->finish();
      for (const OwnedRange& range : replicas->owned())  // once for both micro-batches
        EXPECT_TRUE(at::equal(range.grads, at::full_like(range.grads, sum_of(2 / 3.0, 4 / 3.0))));
      for (const OwnedRange& range : shards->owned())
        EXPECT_TRUE(at::equal(range.grads, at::full_like(range.grads, 2 * sum_of(1 / 3.0, 2 / 3.0))));
    }
  }));
}

TEST(UnitStore, Bf16IsRoundedAlongEachAxis) {
  expect_all_well(on_ranks(4, [&](Communicator& world) {
    const auto owners = world.split(world.rank() / 2, world.rank()),
               replicas = world.split(world.rank() % 2, world.rank());
    const auto units = make_unit_store(two_units(), at::kFloat, at::kCPU, UnitUse::kTrain,
                                       {.num_ranks = 2, .reduce_bf16 = true}, groups_of(*owners, *replicas));
    for (int unit = 1; unit >= 0; --unit) {
      for (Tensor& grad : units->grads(unit)) grad.fill_((world.rank() + 1) / 3.0);
      units->reduce(unit, /*last=*/true);
    }
    units->finish();
    const float low = rounded(rounded(1 / 3.0) + rounded(2 / 3.0)),
                high = rounded(rounded(1.0) + rounded(4 / 3.0));
    for (const OwnedRange& range : units->owned())
      EXPECT_TRUE(at::equal(range.grads, at::full_like(range.grads, rounded(low + high))));
  }));
}

}  // namespace
}  // namespace tycho
