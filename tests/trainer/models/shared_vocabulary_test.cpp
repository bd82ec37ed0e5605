// Looking tokens up and their losses on ranks that share the vocabulary, against plain ATen over all of it.
#include "trainer/models/shared_vocabulary.h"

#include <ATen/core/IListRef.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/one_hot.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/aten.h"
#include "tests/trainer/comm/thread_world.h"
#include "trainer/kernels/token_statistics.h"

namespace tycho {
namespace {

constexpr int64_t kTokens = 12, kVocab = 29, kWidth = 5;

struct Loss {
  Tensor losses_N, gradient_NV;
};

/// In fp64, with ignored targets.
Loss wanted(const Tensor& logits_NV, const Tensor& targets_N, const LogitRules& rules, double weight) {
  const Tensor x = logits_NV.to(at::kDouble) * rules.scale;
  const double cap = rules.softcap;
  const Tensor z = cap == 0 ? x : (x / cap).tanh() * cap;
  const Tensor slope = (cap == 0 ? at::ones_like(z) : 1 - (z / cap).square()) * rules.scale;
  const Tensor is_target = targets_N.ge(0), at_N = targets_N.clamp_min(0).to(at::kLong);
  const Tensor log_p = at::log_softmax(z, 1);
  const Tensor losses = -log_p.gather(1, at_N.unsqueeze(1)).squeeze(1);
  const Tensor gradient = (log_p.exp() - at::one_hot(at_N, kVocab)) * slope * weight;
  return {losses.masked_fill(is_target.logical_not(), 0),
          gradient.masked_fill(is_target.logical_not().unsqueeze(1), 0)};
}

void expect_as_wanted(const LogitRules& rules, at::ScalarType dtype, int ranks, double tolerance) {
  at::manual_seed(3);
  const Tensor logits = (at::randn({kTokens, kVocab}) * 4).to(dtype);
  Tensor targets = at::randint(kVocab, {kTokens}, at::kInt);
  targets[2] = -100;
  const double weight = 0.125;
  const Loss all = wanted(logits, targets, rules, weight);
  std::vector<Tensor> gradients(static_cast<size_t>(ranks));
  ThreadWorld(ranks).run([&](Communicator& world) {
    const ParallelRegion region(world, true);
    const TpItems own = tp_items(kVocab, region.shape());
    Tensor mine = logits.narrow(1, own.begin, own.size()).contiguous(),
           losses = at::empty({kTokens}, at::kFloat);
    Tensor looked = mine.clone(), again = at::empty_like(losses);
    const Tensor weight_1 = at::full({1}, weight, at::kFloat);
    shared_cross_entropy(region, rules, mine, own.begin, targets, weight_1, /*write_gradient=*/true, losses);
    EXPECT_LE((losses - all.losses_N).abs().max().item<double>(), 1e-5);
    gradients[static_cast<size_t>(world.rank())] = mine.to(at::kDouble);
    shared_cross_entropy(region, rules, looked, own.begin, targets, weight_1, /*write_gradient=*/false,
                         again);
    EXPECT_TRUE(at::equal(again, losses));
    const Tensor whole = all_logits(region, logits.narrow(1, own.begin, own.size()).contiguous(), kVocab);
    EXPECT_TRUE(at::equal(whole, logits));
  });
  EXPECT_LE((at::cat(gradients, 1) - all.gradient_NV).abs().max().item<double>(), tolerance * weight);
}

TEST(SharedVocabulary, GivesTheLossOfAllLogitsAndItsGradient) {
  for (const int ranks : {2, 3, 7}) {
    expect_as_wanted({}, at::kFloat, ranks, 1e-6);
    expect_as_wanted({.scale = 0.5f}, at::kFloat, ranks, 1e-6);
    expect_as_wanted({.scale = 0.7f, .softcap = 3.0f}, at::kFloat, ranks, 2e-6);
    expect_as_wanted({}, at::kBFloat16, ranks, 0.01);
  }
}

struct Statistics {
  Tensor statistics_SN, gradient_NV;
};

Statistics of_whole(const Tensor& logits, const Tensor& targets, const LogitRules& rules,
                    const Tensor& by_5N) {
  Statistics whole{at::empty({kTokenStatistics, kTokens}, at::kFloat), logits.clone()};
  token_statistics(rules, logits, targets, whole.statistics_SN);
  token_statistics_backward(rules, kVocab, whole.gradient_NV, targets, whole.statistics_SN, by_5N,
                            at::full({1}, 0.5f));
  return whole;
}

void expect_statistics_of_whole(const LogitRules& rules, at::ScalarType dtype, int ranks, double tolerance) {
  at::manual_seed(5);
  Tensor logits = (at::randn({kTokens, kVocab}) * 4).to(dtype),
         targets = at::randint(kVocab, {kTokens}, at::kInt);
  targets[2] = kIgnoredTarget;
  logits[1][0] = 20, logits[1][kVocab - 1] = 20;  // equal largest logits on two ranks
  const Tensor by = at::randn({kLossStatistics, kTokens});
  const Statistics whole = of_whole(logits, targets, rules, by);
  std::vector<Tensor> gradients(static_cast<size_t>(ranks));
  ThreadWorld(ranks).run([&](Communicator& world) {
    const ParallelRegion region(world, true);
    const TpItems own = tp_items(kVocab, region.shape());
    Tensor mine = logits.narrow(1, own.begin, own.size()).contiguous();
    const Tensor here = own_targets(targets, own.begin, own.size());
    Tensor statistics = at::empty_like(whole.statistics_SN);
    token_statistics(rules, mine, here, statistics);
    share_statistics(region, kVocab, targets, statistics);
    EXPECT_LE((statistics - whole.statistics_SN).abs().max().item<double>(), 2e-5);
    token_statistics_backward(rules, kVocab, mine, here, statistics, by, at::full({1}, 0.5f));
    gradients[static_cast<size_t>(world.rank())] = mine;
  });
  EXPECT_LE((at::cat(gradients, 1) - whole.gradient_NV).abs().max().item<double>(), tolerance);
}

TEST(SharedVocabulary, GivesTheStatisticsOfAllLogitsAndTheirGradient) {
  for (const int ranks : {2, 3, 7}) {
    expect_statistics_of_whole({}, at::kFloat, ranks, 1e-5);
    expect_statistics_of_whole({.scale = 0.7f, .softcap = 3.0f}, at::kFloat, ranks, 1e-5);
    expect_statistics_of_whole({}, at::kBFloat16, ranks, 0.02);
  }
}

TEST(SharedVocabulary, LooksUpEveryTokenOnOneRankAlone) {
  at::manual_seed(4);
  const Tensor table = at::randn({kVocab, kWidth}), positions = at::randn({6, kWidth}),
               tokens = at::randint(kVocab, {kTokens}, at::kInt), d = at::randn({kTokens, kWidth});
  const Tensor wanted = table.index_select(0, tokens.to(at::kLong)) + at::cat({positions, positions}, 0);
  const Tensor wanted_d = at::zeros_like(table).index_add_(0, tokens.to(at::kLong), d);
  ThreadWorld(3).run([&](Communicator& world) {
    const TpItems own = tp_items(kVocab, {3, world.rank()});
    const Tensor rows = table.narrow(0, own.begin, own.size()).contiguous();
    Tensor y = at::empty({kTokens, kWidth}), mine = d.clone(), d_rows = at::zeros_like(rows);
    embed_own(tokens, own.begin, rows, {positions, 6, 0}, y);
    world.all_reduce(y);
    EXPECT_TRUE(at::equal(y, wanted)) << "bit for bit";
    embed_own_backward(tokens, own.begin, mine, d_rows);
    EXPECT_LE((d_rows - wanted_d.narrow(0, own.begin, own.size())).abs().max().item<double>(), 1e-6);
  });
}

}  // namespace
}  // namespace tycho
