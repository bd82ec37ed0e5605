// How units are cut into ranges and take turns in buffers.
#include "trainer/layout/unit_shards.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "trainer/layout/gathered_bytes.h"

namespace tycho {
namespace {

/// Embedding, blocks and head of these sizes.
std::vector<UnitSpec> units_of(const std::vector<int64_t>& sizes) {
  std::vector<UnitSpec> units;
  for (const int64_t size : sizes) units.push_back({.name = "unit", .params = {{"p", {size}}}, .stacks = {}});
  return units;
}

TEST(UnitShards, RangesAreEqualAndHoldEveryElementOnce) {
  for (const int64_t numel : {1, 31, 32, 33, 64, 1000, 4096, 12345})
    for (const int64_t ranks : {1, 2, 3, 4, 7, 64}) {
      int64_t next = 0;
      for (int64_t r = 0; r < ranks; ++r) {
        const ShardRange range = shard_range(numel, ranks, r);
        EXPECT_EQ(range.begin, next);
        EXPECT_LE(range.size(), shard_elements(numel, ranks));
        EXPECT_TRUE(range.end == numel || range.size() == shard_elements(numel, ranks));
        next = range.end;
      }
      EXPECT_EQ(next, numel) << ranks << " ranks";
      EXPECT_EQ(shard_elements(numel, ranks) % 32, 0);
      EXPECT_LT(ranks * shard_elements(numel, ranks), numel + 32 * ranks);
    }
}

TEST(UnitShards, NeighboursHaveBuffersOfTheirOwn) {
  const auto units = units_of({900, 100, 300, 200, 50});
  for (const bool tied : {false, true}) {
    const UnitBuffers buffers = param_buffers(units, {.num_ranks = 4, .tied = tied});
    EXPECT_EQ(buffers.elements.size(), tied ? 4U : 3U) << "whole units at a time";
    for (size_t u = 0; u + 1 < units.size(); ++u) EXPECT_NE(buffers.of_unit[u], buffers.of_unit[u + 1]) << u;
    EXPECT_EQ(buffers.of_unit[0] == buffers.of_unit[4], !tied);
    for (size_t u = 0; u < units.size(); ++u)
      EXPECT_GE(buffers.elements[static_cast<size_t>(buffers.of_unit[u])], units[u].numel());
  }
}

TEST(UnitShards, WhatIsKeptHasABufferForEachUnit) {
  const auto units = units_of({900, 100, 300, 200, 50});
  const UnitBuffers kept = param_buffers(units, {.num_ranks = 2, .keep_params = true});
  EXPECT_EQ(std::set<int>(kept.of_unit.begin(), kept.of_unit.end()).size(), 5U);
  EXPECT_EQ(grad_buffers(units, {.num_ranks = 2, .keep_params = true}).elements.size(), 3U);
  EXPECT_EQ(grad_buffers(units, {.num_ranks = 2, .keep_grads = true}).elements.size(), 5U);
}

TEST(UnitShards, FrozenUnitsHaveNoGradients) {
  auto units = units_of({900, 100, 300, 200, 50});
  for (const size_t u : {0, 1, 3}) units[u].params[0].frozen = true;
  const UnitBuffers buffers = grad_buffers(units, {.num_ranks = 2});
  EXPECT_EQ(buffers.of_unit[0], UnitBuffers::kNone);
  EXPECT_EQ(buffers.of_unit[3], UnitBuffers::kNone);
  EXPECT_EQ(buffers.elements.size(), 2U);
}

TEST(UnitShards, CountsWhatIsGatheredByHand) {
  // 2 ranks; 64 elements each: embedding, four blocks, head.
  const auto units = units_of({64, 64, 64, 64, 64, 64});
  const ShardRules rules{.num_ranks = 2};
  // Forward: all six. Backward: blocks 4 and 3 are still there, 2 and 1 come again.
  EXPECT_EQ(gathered_bytes(units, rules, 1, 4), 4 * 64 * 8);
  // Then block 1 and 2 are there, embedding and head share a buffer.
  EXPECT_EQ(gathered_bytes(units, rules, 2, 4), 4 * 64 * (8 + 6));
  // A tied table stays.
  EXPECT_EQ(gathered_bytes(units, {.num_ranks = 2, .tied = true}, 2, 2), 2 * 64 * (8 + 4));
  EXPECT_EQ(gathered_bytes(units, {.num_ranks = 2, .keep_params = true}, 5, 4), 4 * 64 * 6);
}

}  // namespace
}  // namespace tycho
