// Saves whose numbers are the step, so that a checkpoint shows whether it is whole and of which save.
#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "tests/trainer/aten.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/layout/param_rules.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/optim/optimizer.h"
#include "trainer/optim/weight_average.h"
#include "trainer/saving/unit_tensors.h"
#include "trainer/sharding/sharded_units.h"

namespace tycho {

/// Two units whose sizes no number of ranks divides.
inline std::vector<UnitSpec> numbered_units() {
  UnitSpec first{.name = "first"}, second{.name = "second"};
  first.params = {{"a", {5, 7}}, {"b", {3}}};
  second.params = {{"c", {201}}};
  return {first, second};
}

inline OptimizerConfig numbered_optimizer() {
  OptimizerConfig config;
  config.value = AdamWConfig{.lr = 1e-3};
  return config;
}

/// One that has begun.
inline WeightAverage numbered_average(const std::vector<OwnedRange>& ranges) {
  WeightAverage average(ranges, param_rules(numbered_optimizer(), {}, numbered_units()), /*replaces=*/false);
  average.set_begun(true);
  return average;
}

/// Parameters become the step, moments the step and a half, the average of weights the step and a quarter.
inline void fill_with_step(const std::vector<OwnedRange>& ranges, Optimizer& optimizer,
                           WeightAverage& average, int64_t step) {
  for (const OwnedRange& range : ranges) Tensor(range.params).fill_(step);
  for (const StateBuffer& buffer : optimizer.state()) Tensor(buffer.flat).fill_(step + 0.5);
  for (const StateBuffer& buffer : average.state()) Tensor(buffer.flat).fill_(step + 0.25);
}

/// Expects that a checkpoint can be read and holds the numbers of its step.
inline void expect_whole(const CheckpointInfo& info) {
  const CheckpointReader reader(info);
  reader.verify();
  LocalUnits units(numbered_units(), at::kFloat, at::kCPU, UnitUse::kTrain);
  const auto optimizer = make_optimizer(numbered_optimizer(), units.owned());
  WeightAverage average = numbered_average(units.owned());
  check_fit(reader, units.owned(), optimizer.get(), &average);
  load_tensors(reader, units.owned(), optimizer.get(), {}, &average);
  const auto expect_all = [](const Tensor& numbers, double wanted) {
    EXPECT_TRUE(at::equal(numbers, at::full_like(numbers, wanted))) << wanted;
  };
  const auto step = static_cast<double>(info.step);
  for (const OwnedRange& range : units.owned()) expect_all(range.params, step);
  for (const StateBuffer& buffer : optimizer->state()) expect_all(buffer.flat, step + 0.5);
  for (const StateBuffer& buffer : average.state()) expect_all(buffer.flat, step + 0.25);
}

}  // namespace tycho
