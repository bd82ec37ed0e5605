// The fused classifier against autograd in double.
#include "trainer/kernels/cross_entropy.h"

#include <limits>

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

class CrossEntropyTest : public KernelTest {
 protected:
  struct Result {
    Tensor losses, logits;
  };

  Result run(const Tensor& logits, const Tensor& targets, double weight, bool write_gradient,
             LogitRules rules = {}) {
    Result r{empty_fp32({logits.size(0)}), logits.clone()};
    const Tensor weight_1 = on_device(at::full({1}, weight, at::kFloat));
    table_->cross_entropy({logits.size(0), logits.size(1)}, dtype_, rules, r.logits.mutable_data_ptr(),
                          targets.const_data_ptr<int32_t>(), weight_1.const_data_ptr<float>(), write_gradient,
                          r.losses.mutable_data_ptr<float>(), stream_of(logits));
    return r;
  }
};

TEST_P(CrossEntropyTest, EqualsAutograd) {
  for (const auto& [rows, vocab] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 2}, {7, 259}, {33, 1023}, {5, 50257}}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << vocab);
    const Tensor logits = normal({rows, vocab}, 4.0);
    Tensor targets = ints({rows}, 0, vocab);
    if (rows > 2) targets[1] = kIgnoredTarget;
    Tensor leaf_logits = leaf(logits);
    const Tensor losses = at::cross_entropy_loss(leaf_logits, targets.cpu().to(at::kLong), {},
                                                 at::Reduction::None, kIgnoredTarget);
    (losses.sum() * 0.25).backward();
    const Result trained = run(logits, targets, 0.25, true), evaluated = run(logits, targets, 0.25, false);
    expect_close(trained.losses, losses, 2);
    EXPECT_TRUE(at::equal(trained.losses, evaluated.losses));
    EXPECT_TRUE(at::equal(evaluated.logits, logits));
    expect_close(trained.logits, leaf_logits.grad(), 2);
  }
}

TEST_P(CrossEntropyTest, ScalesAndCapsLogits) {
  struct Case {
    double scale, softcap;
  };
  for (const Case& c : {Case{0.125, 0}, Case{1, 5}, Case{2, 30}, Case{-0.5, 3}, Case{0, 0}}) {
    SCOPED_TRACE(testing::Message() << "scale " << c.scale << ", soft cap " << c.softcap);
    const LogitRules rules{static_cast<float>(c.scale), static_cast<float>(c.softcap)};
    const Tensor logits = normal({9, 1003}, 4.0), targets = ints({9}, 0, 1003);
    Tensor leaf_logits = leaf(logits);
    Tensor z = leaf_logits * c.scale;
    if (c.softcap != 0) z = at::tanh(z / c.softcap) * c.softcap;
    const Tensor losses =
        at::cross_entropy_loss(z, targets.cpu().to(at::kLong), {}, at::Reduction::None, kIgnoredTarget);
    (losses.sum() * 0.25).backward();
    const Result trained = run(logits, targets, 0.25, true, rules);
    const Result evaluated = run(logits, targets, 0.25, false, rules);
    expect_close(trained.losses, losses, 2);
    EXPECT_TRUE(at::equal(trained.losses, evaluated.losses));
    EXPECT_TRUE(at::equal(evaluated.logits, logits));
    expect_close(trained.logits, leaf_logits.grad(), 3);
  }
}

/// Rows of 1,024 elements of which fewer are logits, against rows of just these.
TEST_P(CrossEntropyTest, ElementsAfterTheLogitsChangeNothingAndGetAGradientOf0) {
  for (const int64_t vocab : {1, 959, 1003, 1017, 1024})
    for (const LogitRules& rules : {LogitRules{}, LogitRules{0.125f, 0}, LogitRules{2, 30}}) {
      SCOPED_TRACE(testing::Message() << vocab << " logits, soft cap " << rules.softcap);
      const Tensor logits = normal({5, vocab}, 4.0);
      Tensor targets = ints({5}, 0, vocab);
      targets[1] = kIgnoredTarget;
      LogitRules padded = rules;
      padded.count = vocab;
      for (const double rest : {0.0, 1e30, -1e30, std::numeric_limits<double>::quiet_NaN()}) {
        Tensor rows = on_device(at::full({5, 1024}, rest).to(type_));
        rows.narrow(1, 0, vocab).copy_(logits);
        const Result wanted = run(logits, targets, 0.25, true, rules),
                     got = run(rows, targets, 0.25, true, padded);
        expect_close(got.losses, wanted.losses, 2);
        expect_close(got.logits.narrow(1, 0, vocab), wanted.logits, 2);
        EXPECT_EQ(got.logits.narrow(1, vocab, 1024 - vocab).ne(0).sum().item<int64_t>(), 0);
        EXPECT_TRUE(at::equal(run(rows, targets, 0.25, false, padded).losses, got.losses));
      }
    }
}

TEST_P(CrossEntropyTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  const Tensor logits = normal({64, 1500}), targets = ints({64}, 0, 1500);
  const Result first = run(logits, targets, 1.0, true);
  at::set_num_threads(1);
  const Result again = run(logits, targets, 1.0, true);
  at::set_num_threads(2);
  EXPECT_TRUE(at::equal(first.losses, again.losses) && at::equal(first.logits, again.logits));
}

TEST_P(CrossEntropyTest, HoldsUnderHugeAndMinusInfiniteLogits) {
  Tensor logits = on_device(at::zeros({2, 40}).to(type_));
  logits[0][3] = 30000.0;
  logits[1].fill_(-std::numeric_limits<double>::infinity());
  logits[1][5] = 1.0;
  const Tensor targets = on_device(at::tensor({3, 5}, at::kInt));
  const Result r = run(logits, targets, 1.0, true);
  expect_close(r.losses, at::zeros({2}));
  expect_close(r.logits, at::zeros({2, 40}));
}

TEST_P(CrossEntropyTest, PropagatesNaNToTheLoss) {
  Tensor logits = normal({2, 300});
  logits[1][170] = std::numeric_limits<double>::quiet_NaN();
  const Result r = run(logits, ints({2}, 0, 300), 1.0, true);
  EXPECT_FALSE(r.losses[0].isnan().item<bool>());
  EXPECT_TRUE(r.losses[1].isnan().item<bool>());
}

TYCHO_ON_EVERY_TABLE(CrossEntropyTest);

TEST(CrossEntropyOp, NamesATargetOutsideTheVocabulary) {
  Tensor logits = at::randn({3, 5}), losses = at::empty({3});
  const Tensor weight = at::ones({1}), before = logits.clone();
  EXPECT_EQ(error_of([&] {
              cross_entropy({}, logits, at::tensor({1, 5, 2}, at::kInt), weight, true, losses);
            }),
            "[cross_entropy] target 5 at position 1 is neither in the vocabulary of 5 nor -100 (ignored). "
            "Was the data made with a different tokenizer?");
  EXPECT_TRUE(at::equal(logits, before));
  EXPECT_NE(error_of([&] {
              cross_entropy({}, logits, at::tensor({1, 2, 2}, at::kLong), weight, true, losses);
            }).find("targets"),
            std::string::npos);
  EXPECT_EQ(error_of([&] {
              cross_entropy({1.0f, -3.0f}, logits, at::tensor({1, 2, 2}, at::kInt), weight, true, losses);
            }),
            "[cross_entropy] expected a soft cap above 0, or 0 for none, got -3");
  EXPECT_EQ(error_of([&] {
              cross_entropy({.count = 4}, logits, at::tensor({1, 4, 2}, at::kInt), weight, true, losses);
            }),
            "[cross_entropy] target 4 at position 1 is neither in the vocabulary of 4 nor -100 (ignored). "
            "Was the data made with a different tokenizer?");
  EXPECT_EQ(error_of([&] {
              cross_entropy({.count = 6}, logits, at::tensor({1, 4, 2}, at::kInt), weight, true, losses);
            }),
            "[cross_entropy] expected at most the 5 elements of a row, got 6 logits");
  cross_entropy({}, logits, at::tensor({1, -100, 2}, at::kInt), Tensor(), false, losses);
  EXPECT_EQ(losses[1].item<float>(), 0.0f);
  cross_entropy({}, logits, at::tensor({1, -100, 2}, at::kInt), weight, true, losses);
  EXPECT_EQ(logits[1].abs().sum().item<float>(), 0.0f);
  EXPECT_NEAR(logits[0].sum().item<float>(), 0.0, 1e-6);
}

}  // namespace
}  // namespace tycho
