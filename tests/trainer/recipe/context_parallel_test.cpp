// What ranks that share each sequence need of a recipe.
#include "trainer/recipe/context_parallel.h"

#include <gtest/gtest.h>

#include "tests/trainer/recipe/problems_after.h"

namespace tycho {
namespace {

std::string problems_with(int64_t seq_len, int64_t cp, const std::function<void(TrainConfig&)>& change = {}) {
  const auto all = [&](TrainConfig& c) {
    c.seq_len = seq_len, c.parallel.cp = cp;
    if (change) change(c);
  };
  TrainConfig config;
  all(config);
  return problems_after(all, fewest_ranks(config.parallel));
}

TEST(ContextParallelConfig, SharesSequencesOfTwiceAsManyParts) {
  for (const int64_t cp : {1, 2, 3, 4}) EXPECT_EQ(problems_with(96, cp), "") << cp;
  EXPECT_EQ(problems_with(97, 1), "");
  EXPECT_EQ(
      problems_with(100, 4),
      "seq_len: 100 tokens cannot be shared evenly by parallel.cp = 4: expected a multiple of 8; write 96 "
      "or 104, or set parallel.cp = 1");
  EXPECT_EQ(
      problems_with(5, 4),
      "seq_len: 5 tokens cannot be shared evenly by parallel.cp = 4: expected a multiple of 8; write 8, or "
      "set parallel.cp = 1");
}

TEST(ContextParallelConfig, LeavesTokensForRanksThatShareMatrices) {
  const auto shared = [](int64_t seq_len, bool sequence) {
    return problems_with(seq_len, 2,
                         [&](TrainConfig& c) { c.parallel.tp = 4, c.parallel.sequence_parallel = sequence; });
  };
  EXPECT_EQ(shared(96, true), "");
  EXPECT_EQ(shared(100, false), "");
  EXPECT_EQ(shared(100, true),
            "seq_len: 100 tokens cannot be shared evenly by parallel.cp = 2 and parallel.tp = 4: expected a "
            "multiple of 8; write 96 or 104, or set parallel.cp = 1");
}

TEST(ContextParallelConfig, PassesKeysAroundARingOfRanks) {
  const auto ring = [](TrainConfig& c) { c.parallel.cp_attention = CpAttention::kRing; };
  EXPECT_EQ(problems_with(96, 2, ring), "");
  EXPECT_EQ(problems_with(96, 1, ring),
            "parallel.cp_attention: has no effect with parallel.cp = 1; remove it");
  EXPECT_EQ(problems_with(96, 1, [](TrainConfig& c) { c.parallel.cp_attention = CpAttention::kAuto; }), "");
}

TEST(ContextParallelConfig, TakesOptimizersAndRoundingOfWholeParameters) {
  EXPECT_EQ(problems_with(96, 2, [](TrainConfig& c) { c.optimizer.value = MuonConfig{}; }), "");
  EXPECT_EQ(problems_with(96, 2,
                          [](TrainConfig& c) {
                            c.precision = Precision::kBf16, c.master_weights = MasterWeights::kStochastic;
                          }),
            "");
}

}  // namespace
}  // namespace tycho
