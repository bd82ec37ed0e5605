// Ranks that are threads of this process, one of which is not what the others are.
#include "trainer/train/replica_check.h"

#include <gtest/gtest.h>

#include "tests/trainer/comm/thread_world.h"
#include "trainer/base/error.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/param_rules.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/sharding/init.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {
namespace {

ModelConfig tiny_model() {
  LlamaConfig llama;
  llama.width = 16, llama.layers = 1, llama.heads = 2, llama.kv_heads = 2, llama.ffn_width = 32;
  llama.vocab_size = 64;
  ModelConfig model;
  model.value = llama;
  return model;
}

/// What a rank that trains has: the same on all.
struct Replica {
  explicit Replica(at::ScalarType dtype = at::kFloat)
      : specs(model_layout(tiny_model()).units),
        units(specs, dtype, at::kCPU, UnitUse::kTrain),
        optimizer(make_optimizer(config, units.owned(), param_rules(config, {}, specs), /*seed=*/7)) {
    for (const OwnedRange& range : units.owned()) initialise(range, /*seed=*/7);
  }
  OptimizerConfig config;
  std::vector<UnitSpec> specs;
  LocalUnits units;
  std::unique_ptr<Optimizer> optimizer;
};

/// What each of three ranks that compare throws; `facts` is called on every rank.
std::vector<std::string> compared(const std::function<RankFacts(int rank)>& facts) {
  std::vector<std::string> said(3);
  ThreadWorld(3).run([&](Communicator& world) {
    try {
      require_same_facts(world, facts(world.rank()), /*step=*/200);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kTopology);
      said[static_cast<size_t>(world.rank())] = error.what();
    }
  });
  return said;
}

void expect_all_say(const std::vector<std::string>& said, const std::string& part) {
  for (const std::string& one : said) EXPECT_NE(one.find(part), std::string::npos) << one;
}

TEST(SameState, ReplicasAreAlike) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const std::string& one : compared([&](int) {
           Replica replica(dtype);
           return tensor_facts(replica.units.owned(), *replica.optimizer);
         }))
      EXPECT_EQ(one, "");
}

TEST(SameState, AWeightOfOneRankIsNamed) {
  const auto said = compared([](int rank) {
    Replica replica;
    if (rank == 2) replica.units.gathered()[1].params()[3].flatten()[5].add_(1e-7);
    return tensor_facts(replica.units.owned(), *replica.optimizer);
  });
  const std::string name = Replica().specs[1].params[3].name;
  expect_all_say(said, "[paranoid] after step 200 replicas have diverged: " + name + " is ");
  expect_all_say(said, " on rank 0 and ");
  expect_all_say(said, " on rank 2. ");
}

TEST(SameState, TheFirstOfSeveralNamesIsSaid) {
  const auto said = compared([](int rank) {
    Replica replica;
    for (StateBuffer& buffer : replica.optimizer->state())
      if (rank == 1) buffer.flat.add_(1);
    return tensor_facts(replica.units.owned(), *replica.optimizer);
  });
  expect_all_say(said, "optimizer.exp_avg." + Replica().specs[0].params[0].name + " is ");
  expect_all_say(said, " more differ");
}

TEST(SameState, RoundedWeightsAreComparedToo) {
  const auto said = compared([](int rank) {
    Replica replica(at::kBFloat16);
    if (rank == 1) replica.units.gathered()[0].params()[0].fill_(1);
    return tensor_facts(replica.units.owned(), *replica.optimizer);
  });
  expect_all_say(said, "rounded " + Replica().specs[0].params[0].name + " is ");
}

TEST(SameState, AKnobOfOneRankIsNamedWithBothValues) {
  const auto facts = [](auto change) {
    return [change](int rank) {
      TrainState state;
      state.step = 200, state.data.sample = 64;
      TrainConfig config;
      double lr = 1e-3;
      if (rank == 1) change(state, config, lr);
      return state_facts(state, config, lr);
    };
  };
  for (const std::string& one : compared(facts([](TrainState&, TrainConfig&, double&) {})))
    EXPECT_EQ(one, "");
  expect_all_say(compared(facts([](TrainState& state, TrainConfig&, double&) { state.data.sample = 65; })),
                 "data.sample is 64 on rank 0 and 65 on rank 1.");
  expect_all_say(compared(facts([](TrainState&, TrainConfig&, double& lr) { lr = 2e-3; })),
                 "lr is 0.001 on rank 0 and 0.002 on rank 1.");
  expect_all_say(compared(facts([](TrainState&, TrainConfig& config, double&) { config.clip.norm = 7; })),
                 "clip.norm is ");
  expect_all_say(compared(facts([](TrainState&, TrainConfig& config, double&) {
                   std::get<AdamWConfig>(config.optimizer.value).betas = {0.5, 0.95};
                 })),
                 "optimizer.betas is [0.9,0.95] on rank 0 and [0.5,0.95] on rank 1.");
}

}  // namespace
}  // namespace tycho
