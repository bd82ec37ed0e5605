// Ranks that share a model compute what one rank does: every option of every family, loss and gradients.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "tests/trainer/aten.h"
#include "tests/trainer/comm/late_world.h"
#include "tests/trainer/comm/thread_world.h"
#include "tests/trainer/models/model_cases.h"
#include "trainer/comm/mesh.h"
#include "trainer/layout/gathered_bytes.h"
#include "trainer/models/decoder.h"
#include "trainer/models/model.h"
#include "trainer/sharding/init.h"
#include "trainer/sharding/sharded_units.h"

namespace tycho {
namespace {

/// How ranks share the work of a step, and what of the model is frozen.
struct Sharing {
  const char* name;
  int replicate = 1, shard = 2;
  bool keep_params = false, keep_grads = false;
  int micro_batches = 1;  // of each rank
  std::function<bool(size_t unit, const ParamSpec&)> frozen = {};
};

class ShardedModel : public testing::TestWithParam<ModelCase> {
 protected:
  void SetUp() override {
    at::manual_seed(5);
    config_ = GetParam().config;
    layout_ = model_layout(config_);
    model_weights_ = std::make_unique<LocalUnits>(layout_.units, at::kFloat, at::kCPU, UnitUse::kInfer);
    for (GatheredUnit& unit : model_weights_->gathered())
      unit.flat_params().copy_(at::randn({unit.layout().numel()}).mul_(0.1));
    for (int i = 0; i < 10; ++i)
      tokens_.push_back(at::randint(layout_.vocab_size, {GetParam().shape.tokens()}, at::kInt));
  }

  MicroBatch micro_batch(int64_t i, bool first, bool last) const {
    return numbered_micro_batch(tokens_, i, first, last);
  }
  /// Fills the owned ranges with the model's weights.
  void fill(UnitStore& units) const {
    for (size_t u = 0; u < units.owned().size(); ++u) {
      const OwnedRange& range = units.owned()[u];
      Tensor(range.params).copy_(model_weights_->owned()[u].params.narrow(0, range.begin, range.size()));
    }
  }
  double step(UnitStore& units, int64_t first, int64_t count) const {
    Model model(config_, units, GetParam().shape, at::kFloat, at::kCPU, recompute_);
    const Tensor weight_1 = at::full({1}, 1.0 / 64, at::kFloat);
    double loss = 0;
    for (int64_t i = 0; i < count; ++i)
      loss += model.forward_backward(micro_batch(first + i, i == 0, i + 1 == count), weight_1).item<double>();
    units.finish();
    return loss;
  }
  void expect_as_one_rank(const Sharing& sharing);

  ModelConfig config_;
  ModelLayout layout_;
  RecomputeConfig recompute_;
  std::unique_ptr<LocalUnits> model_weights_;
  std::vector<Tensor> tokens_;
};

/// Elements of all gradients, padded.
int64_t trained(const std::vector<UnitSpec>& specs, const ShardRules& rules) {
  int64_t sum = 0;
  for (const UnitSpec& spec : specs)
    if (!spec.frozen()) sum += rules.num_ranks * shard_elements(spec.numel(), rules.num_ranks);
  return sum;
}

void ShardedModel::expect_as_one_rank(const Sharing& sharing) {
  SCOPED_TRACE(sharing.name);
  std::vector<UnitSpec> specs = layout_.units;
  for (size_t u = 0; u < specs.size(); ++u)
    for (ParamSpec& param : specs[u].params) param.frozen = sharing.frozen && sharing.frozen(u, param);
  const MeshShape shape{{1, sharing.replicate, sharing.shard, 1, 1}};
  const int num_ranks = shape.num_ranks();
  LocalUnits one(specs, at::kFloat, at::kCPU, UnitUse::kTrain);
  fill(one);
  double wanted_loss = 0;
  for (int repeat = 0; repeat < 2; ++repeat)  // nothing of a step is left for the next one
    wanted_loss = step(one, 0, int64_t{num_ranks} * sharing.micro_batches);
  std::atomic<double> loss = 0;
  ThreadWorld(num_ranks).run([&](Communicator& world) {
    LateWorld late(world);
    const Mesh mesh(shape, late);
    const ShardRules rules{sharing.shard, sharing.keep_params, sharing.keep_grads, layout_.tied};
    ShardedUnits units(specs, at::kFloat, at::kCPU, UnitUse::kTrain, rules,
                       {[&mesh](const UnitSpec&) -> UnitGroup {
                         return {mesh.group(kShardAxes), mesh.group(Axis::kDpReplicate)};
                       }});
    fill(units);
    for (int repeat = 0; repeat < 2; ++repeat) {
      const double own = step(units, int64_t{world.rank()} * sharing.micro_batches, sharing.micro_batches);
      if (repeat == 1) loss += own;
    }
    const auto& group = static_cast<const LateWorld&>(mesh.group(kShardAxes));
    EXPECT_EQ(group.in_flight, 0);
    EXPECT_EQ(group.traffic.gathered, 2 * gathered_bytes(specs, rules, sharing.micro_batches, sizeof(float)))
        << "what tycho plan counts";
    EXPECT_EQ(group.traffic.scattered,
              2 * (sharing.keep_grads ? 1 : sharing.micro_batches) * trained(specs, rules));
    for (int u = 0; u < units.num_units(); ++u)
      for (size_t i = 0; i < specs[static_cast<size_t>(u)].params.size(); ++i) {
        const Tensor given = units.grad(u, i), wanted = one.grads(u)[i];
        ASSERT_EQ(given.defined(), wanted.defined());
        if (!given.defined()) continue;
        EXPECT_LE((given - wanted).norm().item<double>(), 2e-5 * wanted.norm().item<double>() + 1e-9)
            << specs[static_cast<size_t>(u)].params[i].name << " on rank " << world.rank();
        EXPECT_TRUE(at::equal(units.param(u, i), one.acquire(u, Pass::kForward)[i]));
      }
  });
  EXPECT_NEAR(loss / wanted_loss, 1, 1e-9);
}

TEST_P(ShardedModel, ComputesWhatOneRankDoes) {
  expect_as_one_rank({.name = "two ranks"});
  expect_as_one_rank({.name = "three ranks, two micro-batches", .shard = 3, .micro_batches = 2});
  expect_as_one_rank({.name = "parameters are kept", .keep_params = true, .micro_batches = 2});
  expect_as_one_rank(
      {.name = "gradients are kept, too", .keep_params = true, .keep_grads = true, .micro_batches = 3});
  expect_as_one_rank({.name = "two copies", .replicate = 2, .micro_batches = 2});
}

TEST_P(ShardedModel, ComputesWhatOneRankDoesWhenBlocksComputeAgain) {
  recompute_ = {Recompute::kFull, 1};
  expect_as_one_rank({.name = "all"});
}

TEST_P(ShardedModel, ComputesWhatOneRankDoesWithFrozenParameters) {
  const size_t last = layout_.units.size() - 1;
  const auto freeze = [&](const char* name, auto which) {
    expect_as_one_rank({.name = name, .micro_batches = 2, .frozen = which});
  };
  freeze("vectors", [](size_t, const ParamSpec& param) { return param.shape.size() == 1; });
  freeze("embedding and first block", [&](size_t u, const ParamSpec&) { return u < 2 && u < last; });
  freeze("all but the head", [&](size_t u, const ParamSpec&) { return u < last; });
  freeze("the middle", [&](size_t u, const ParamSpec&) { return u > 0 && u < last; });
}

TEST_P(ShardedModel, LooksAtLossesAndLogitsAsOneRankDoes) {
  LocalUnits one(layout_.units, at::kFloat, at::kCPU, UnitUse::kTrain);
  fill(one);
  const MicroBatch micro = micro_batch(3, true, true);
  const auto look = [&](UnitStore& units) {
    Model model(config_, units, GetParam().shape, at::kFloat, at::kCPU);
    const Tensor losses = model.losses(micro.tokens_N, micro.targets_N).clone();
    Decoder decoder(config_, units, 1, 2, at::kFloat, at::kCPU);
    decoder.next_logits(micro.tokens_N.narrow(0, 0, 1));
    return std::pair(losses, decoder.next_logits(micro.tokens_N.narrow(0, 0, 1)));
  };
  const auto [losses, logits] = look(one);
  ThreadWorld(2).run([&, losses = losses, logits = logits](Communicator& world) {
    LateWorld late(world);
    const auto alone = make_world_of_one();
    ShardedUnits units(layout_.units, at::kFloat, at::kCPU, UnitUse::kTrain, {2, false, false, layout_.tied},
                       {[&](const UnitSpec&) -> UnitGroup {
                         return {late, *alone};
                       }});
    fill(units);
    const auto given = look(units);
    EXPECT_TRUE(at::equal(given.first, losses));
    EXPECT_TRUE(at::equal(given.second, logits));
    EXPECT_EQ(late.in_flight, 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Families, ShardedModel, testing::ValuesIn(model_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tycho
