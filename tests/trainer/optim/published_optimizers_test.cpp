// Optimizers against trajectories of published code.
#include <gtest/gtest.h>

#include "tests/trainer/optim/published_problem.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/optim/optimizer.h"
#include "trainer/sharding/unit_store.h"

namespace tycho {
namespace {

/// Another order of operations in fp32 needs half of this (tests/golden/optim/published/README.md).
constexpr double kRounding = 1e-6;

void expect_published(const std::string& name, const OptimizerConfig& config) {
  for (const PublishedCase& one : published_cases(name)) {
    LocalUnits units(published_units(), at::kFloat, at::kCPU, UnitUse::kTrain);
    const auto optimizer = make_optimizer(config, units.owned(), param_rules(config, {}, published_units()));
    const PublishedDistance distance = train_published(one, units.owned(), *optimizer);
    EXPECT_LE(distance.weights, kRounding) << one.name;
    EXPECT_LE(distance.losses, 5 * kRounding) << one.name;
  }
}

TEST(PublishedOptimizersTest, AdamWIsTorchs) {
  AdamWConfig adamw;
  adamw.lr = 0.02, adamw.betas = {0.9, 0.95}, adamw.eps = 1e-8, adamw.weight_decay = 0.1;
  adamw.decay_mask = DecayMask::kAll;
  expect_published("adamw", {adamw});
}

TEST(PublishedOptimizersTest, LionIsThatOfCautiousOptimizers) {
  LionConfig lion;
  lion.lr = 0.005, lion.betas = {0.9, 0.99}, lion.weight_decay = 0.1, lion.decay_mask = DecayMask::kAll;
  expect_published("lion", {lion});
}

}  // namespace
}  // namespace tycho
