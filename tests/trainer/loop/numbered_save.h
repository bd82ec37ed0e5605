// Saves whose numbers are the step, so that a checkpoint shows whether it is whole and of which save.
#pragma once
#include <gtest/gtest.h>

#include <vector>

#include "tests/trainer/aten.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/optim/optimizer.h"
#include "trainer/parallel/sharded_units.h"
#include "trainer/restore/unit_tensors.h"

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

/// Parameters become the step, moments the step and a half.
inline void fill_with_step(const std::vector<OwnedRange>& ranges, Optimizer& optimizer, int64_t step) {
  for (const OwnedRange& range : ranges) Tensor(range.params).fill_(step);
  for (const StateBuffer& buffer : optimizer.state()) Tensor(buffer.flat).fill_(step + 0.5);
}

/// Expects that a checkpoint can be read and holds the numbers of its step.
inline void expect_whole(const CheckpointInfo& info) {
  const CheckpointReader reader(info);
  reader.verify();
  LocalUnits units(numbered_units(), at::kFloat, at::kCPU, UnitUse::kTrain);
  const auto optimizer = make_optimizer(numbered_optimizer(), units.owned());
  check_fit(reader, units.owned(), optimizer.get());
  load_tensors(reader, units.owned(), optimizer.get());
  for (const OwnedRange& range : units.owned())
    EXPECT_TRUE(at::equal(range.params, at::full_like(range.params, static_cast<double>(info.step))));
  for (const StateBuffer& buffer : optimizer->state())
    EXPECT_TRUE(at::equal(buffer.flat, at::full_like(buffer.flat, static_cast<double>(info.step) + 0.5)));
}

}  // namespace tycho
