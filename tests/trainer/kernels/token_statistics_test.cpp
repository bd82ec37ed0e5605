// Statistics of logits, and the gradient of random functions of them, against autograd in double.
#include "trainer/kernels/token_statistics.h"

#include <ATen/ops/amax.h>
#include <ATen/ops/logsumexp.h>

#include <limits>

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// The five statistics of losses, [5, N], of logits after the rules.
Tensor statistics_of(const Tensor& z_NV, const Tensor& targets_N) {
  const Tensor at_N1 = targets_N.to(at::kLong).clamp_min(0).unsqueeze(1);
  return at::stack({z_NV.logsumexp(1), z_NV.gather(1, at_N1).squeeze(1), z_NV.mean(1), z_NV.amax(1),
                    (at::softmax(z_NV, 1) * z_NV).sum(1)});
}

Tensor ruled(const LogitRules& rules, const Tensor& logits) {
  const Tensor z = logits * rules.scale;
  return rules.softcap == 0 ? z : at::tanh(z / rules.softcap) * rules.softcap;
}

/// A random function of the statistics, [N]: linear, curved and mixed.
struct RandomLoss {
  Tensor linear = at::randn({5, 1}, at::kDouble), curved = at::randn({5, 1}, at::kDouble),
         mixed = at::randn({5, 5}, at::kDouble);
  Tensor operator()(const Tensor& s_5N) const {
    const Tensor scaled = s_5N / 8;
    return (linear * s_5N).sum(0) + at::tanh((curved * scaled).sum(0)) +
           (scaled * at::matmul(mixed, scaled)).sum(0);
  }
};

class TokenStatisticsTest : public KernelTest {
 protected:
  void SetUp() override {
    KernelTest::SetUp();
    at::manual_seed(11);
  }

  Tensor statistics(const Tensor& logits, const Tensor& targets, LogitRules rules = {}) {
    Tensor all = empty_fp32({kTokenStatistics, logits.size(0)});
    table_->token_statistics({logits.size(0), logits.size(1)}, dtype_, rules, logits.const_data_ptr(),
                             targets.const_data_ptr<int32_t>(), all.mutable_data_ptr<float>(),
                             stream_of(logits));
    return all;
  }

  /// Logits' gradient, given that of their statistics.
  Tensor backward(const Tensor& logits, const Tensor& targets, const Tensor& gradients_5N, double weight,
                  LogitRules rules = {}) {
    const Tensor all = statistics(logits, targets, rules), weight_1 = on_device(at::full({1}, weight));
    const Tensor by = on_device(gradients_5N.to(at::kFloat).contiguous());
    Tensor result = logits.clone();
    table_->token_statistics_backward(
        {logits.size(0), logits.size(1)}, dtype_, rules, rules.count_of(logits.size(1)),
        result.mutable_data_ptr(), targets.const_data_ptr<int32_t>(), all.const_data_ptr<float>(),
        by.const_data_ptr<float>(), weight_1.const_data_ptr<float>(), stream_of(logits));
    return result;
  }

  void expect_autograd(const Tensor& logits, const Tensor& targets, LogitRules rules, const RandomLoss& loss,
                       double slack) {
    const Tensor is_target = targets.cpu().ne(kIgnoredTarget);
    const Tensor leaf_logits = leaf(logits);
    const Tensor wanted = statistics_of(ruled(rules, leaf_logits), targets.cpu()) * is_target;
    (loss(wanted) * is_target).sum().mul(0.25).backward();
    Tensor by = leaf(wanted);
    loss(by).sum().backward();
    expect_close(statistics(logits, targets, rules).narrow(0, 0, 5), wanted, 2);
    expect_close(backward(logits, targets, by.grad(), 0.25, rules), leaf_logits.grad(), slack);
  }
};

TEST_P(TokenStatisticsTest, GradientsOfRandomFunctionsEqualAutograd) {
  for (const auto& [rows, vocab] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 2}, {7, 259}, {33, 1023}, {9, 1024}, {5, 50257}})
    for (int round = 0; round < 3; ++round) {
      SCOPED_TRACE(testing::Message() << rows << " x " << vocab << ", function " << round);
      const Tensor logits = normal({rows, vocab}, 4.0);
      Tensor targets = ints({rows}, 0, vocab);
      if (rows > 2) targets[1] = kIgnoredTarget;
      expect_autograd(logits, targets, {}, {}, 4);
    }
}

TEST_P(TokenStatisticsTest, ScalesAndCapsLogits) {
  for (const LogitRules& rules :
       {LogitRules{0.125f, 0}, LogitRules{1, 5}, LogitRules{2, 30}, LogitRules{-0.5f, 3}, LogitRules{0, 0}}) {
    SCOPED_TRACE(testing::Message() << "scale " << rules.scale << ", soft cap " << rules.softcap);
    expect_autograd(normal({9, 1003}, 4.0), ints({9}, 0, 1003), rules, {}, 6);
  }
}

/// Rows of 1,024 elements of which fewer are logits, against rows of just these.
TEST_P(TokenStatisticsTest, ElementsAfterTheLogitsChangeNothingAndGetAGradientOf0) {
  for (const int64_t vocab : {1, 959, 1003, 1017, 1024})
    for (const LogitRules& rules : {LogitRules{}, LogitRules{0.125f, 0}, LogitRules{2, 30}}) {
      SCOPED_TRACE(testing::Message() << vocab << " logits, soft cap " << rules.softcap);
      const Tensor logits = normal({5, vocab}, 4.0), by = at::randn({5, 5}, at::kDouble);
      Tensor targets = ints({5}, 0, vocab);
      targets[1] = kIgnoredTarget;
      LogitRules padded = rules;
      padded.count = vocab;
      for (const double rest : {0.0, 1e30, kNaN}) {
        Tensor rows = on_device(at::full({5, 1024}, rest).to(type_));
        rows.narrow(1, 0, vocab).copy_(logits);
        expect_close(statistics(rows, targets, padded), statistics(logits, targets, rules), 4);
        const Tensor got = backward(rows, targets, by, 0.25, padded);
        expect_close(got.narrow(1, 0, vocab), backward(logits, targets, by, 0.25, rules), 4);
        EXPECT_EQ(got.narrow(1, vocab, 1024 - vocab).ne(0).sum().item<int64_t>(), 0);
      }
    }
}

TEST_P(TokenStatisticsTest, EqualLargestLogitsShareTheGradientOfMax) {
  Tensor logits = on_device(at::zeros({3, 100}).to(type_));
  logits[0].narrow(0, 30, 4).fill_(2.0);
  logits[1].fill_(-1.5);
  logits[2][99] = 7.0;
  Tensor by = at::zeros({5, 3});
  by[kMaxLogit].fill_(1.0);
  const Tensor targets = ints({3}, 0, 100), leaf_logits = leaf(logits);
  leaf_logits.amax(1).sum().backward();
  expect_close(backward(logits, targets, by, 1.0), leaf_logits.grad());
  EXPECT_EQ(statistics(logits, targets)[kNumLargest].cpu().sum().item<float>(), 105.0f);
}

TEST_P(TokenStatisticsTest, HoldsUnderLargeLogits) {
  Tensor logits = normal({6, 515}, 1.0);
  logits.narrow(0, 0, 2).mul_(3000.0);
  logits.narrow(0, 2, 2).add_(10000.0);
  logits.narrow(0, 4, 2).sub_(10000.0);
  const Tensor targets = ints({6}, 0, 515), leaf_logits = leaf(logits);
  const Tensor wanted = statistics_of(leaf_logits, targets.cpu());
  Tensor by = at::ones({5, 6}, at::kDouble);
  (wanted * by).sum().backward();
  expect_close(statistics(logits, targets).narrow(0, 0, 5), wanted, 2);
  expect_close(backward(logits, targets, by, 1.0), leaf_logits.grad(), 8);
}

TEST_P(TokenStatisticsTest, LogitsOfMinusInfinityHaveNoProbability) {
  Tensor logits = on_device(at::full({2, 40}, -std::numeric_limits<double>::infinity()).to(type_));
  logits[0][3] = 1.0, logits[0][4] = 1.0, logits[1][39] = 30000.0;
  const Tensor targets = on_device(at::tensor({3, 39}, at::kInt));
  const Tensor all = statistics(logits, targets);
  expect_close(all[kLogSumExp], at::tensor({1.0 + std::log(2.0), logits[1][39].item<double>()}), 2);
  expect_close(all[kExpectedLogit], at::tensor({1.0, logits[1][39].item<double>()}));
  Tensor by = at::ones({5, 2}), wanted = at::zeros({2, 40});
  by[kMeanLogit].fill_(0);
  wanted[0][3] = 1 + 0.5 + 0.5 + 0.5, wanted[0][4] = 0.5 + 0.5 + 0.5, wanted[1][39] = 4;
  expect_close(backward(logits, targets, by, 1.0), wanted, 2);
}

TEST_P(TokenStatisticsTest, PropagatesNaNAndKeepsItOutOfIgnoredRows) {
  Tensor logits = normal({3, 300}), targets = ints({3}, 0, 300);
  logits[1][170] = kNaN, logits[2][7] = kNaN, targets[2] = kIgnoredTarget;
  const Tensor all = statistics(logits, targets).cpu();
  EXPECT_FALSE(all.select(1, 0).isnan().any().item<bool>());
  for (const int row : {kLogSumExp, kMeanLogit, kMaxLogit, kExpectedLogit})
    EXPECT_TRUE(all[row][1].isnan().item<bool>()) << row;
  EXPECT_EQ(all.select(1, 2).abs().sum().item<float>(), 0.0f);
  Tensor by = at::ones({5, 3});
  by.select(1, 2).fill_(kNaN);
  const Tensor gradient = backward(logits, targets, by, 1.0);
  EXPECT_TRUE(gradient[1].isnan().any().item<bool>());
  EXPECT_EQ(gradient[2].abs().sum().item<float>(), 0.0f);
}

TEST_P(TokenStatisticsTest, ATargetElsewhereHasNoLogitAndNoGradientHere) {
  const Tensor logits = normal({2, 300}), here = on_device(at::tensor({5, 5}, at::kInt));
  const Tensor elsewhere = on_device(at::tensor({5, kTargetElsewhere}, at::kInt));
  Tensor without = statistics(logits, here).cpu();
  without[kTargetLogit][1] = 0;
  EXPECT_TRUE(at::equal(statistics(logits, elsewhere).cpu(), without));
  Tensor by = at::randn({5, 2});
  const Tensor gradient = backward(logits, elsewhere, by, 0.5);
  by[kTargetLogit][1] = 0;
  expect_close(gradient, backward(logits, here, by, 0.5));
}

TEST_P(TokenStatisticsTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  const Tensor logits = normal({64, 1500}), targets = ints({64}, 0, 1500), by = at::randn({5, 64});
  const Tensor first = statistics(logits, targets), gradient = backward(logits, targets, by, 1.0);
  at::set_num_threads(1);
  EXPECT_TRUE(at::equal(statistics(logits, targets), first));
  EXPECT_TRUE(at::equal(backward(logits, targets, by, 1.0), gradient));
  at::set_num_threads(2);
}

TYCHO_ON_EVERY_TABLE(TokenStatisticsTest);

TEST(TokenStatisticsOp, NamesInputsThatDoNotFit) {
  Tensor logits = at::randn({3, 5}), all = at::empty({kTokenStatistics, 3});
  const Tensor targets = at::tensor({1, 2, 2}, at::kInt), weight = at::ones({1}), by = at::ones({5, 3});
  EXPECT_EQ(error_of([&] {
              token_statistics({}, logits, at::tensor({1, 5, 2}, at::kInt), all);
            }),
            "[token_statistics] target 5 at position 1 is neither in the vocabulary of 5 nor -100 (ignored). "
            "Was the data made with a different tokenizer?");
  EXPECT_EQ(error_of([&] {
              token_statistics({1.0f, -3.0f}, logits, targets, all);
            }),
            "[token_statistics] expected a soft cap above 0, or 0 for none, got -3");
  Tensor few = at::empty({5, 3});
  EXPECT_NE(error_of([&] { token_statistics({}, logits, targets, few); }).find("statistics"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { token_statistics_backward({}, 4, logits, targets, all, by, weight); }),
            "[token_statistics_backward] expected a vocabulary of at least the 5 logits of a row, got 4");
  EXPECT_NE(error_of([&] {
              token_statistics_backward({}, 5, logits, targets, all, all, weight);
            }).find("gradients"),
            std::string::npos);
}

}  // namespace
}  // namespace tycho
