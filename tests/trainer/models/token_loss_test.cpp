// Models with losses of a recipe's own against autograd: every loss, and every parameter's gradient.
#include "trainer/models/token_loss.h"

#include <ATen/core/IListRef.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/where.h>
#include <gtest/gtest.h>

#include "tests/trainer/expression/loss_terms.h"
#include "tests/trainer/models/counting_units.h"
#include "tests/trainer/models/decoder_oracle.h"
#include "tests/trainer/models/model_cases.h"
#include "trainer/models/model.h"
#include "trainer/sharding/init.h"

namespace tycho {
namespace {

constexpr int64_t kBatch = 3, kSeq = 12, kVocab = 40;

/// Statistics of all tokens that a loss reads, [N], in double, with a graph of autograd.
struct Knows {
  at::Tensor lse, target, mean, max, px, weight, position;
};
using Terms = std::function<at::Tensor(const Knows&)>;

struct Case {
  std::string name;
  LossTerms terms;
  std::vector<Terms> wanted;  // in the order of names
};

at::Tensor probability(const Knows& z) { return (z.target - z.lse).exp(); }
at::Tensor floor_of(const at::Tensor& x, double low) { return at::maximum(x, at::full_like(x, low)); }

std::vector<Case> cases() {
  const char* others = "max sub 1 exp sub target lse 1e-6";
  return {
      {"cross_entropy", {}, {}},
      {"smoothed", {{"smoothed", term_of("sub sub lse mul 0.9 target mul 0.1 mean")}}, {[](const Knows& z) {
         return z.lse - 0.9 * z.target - 0.1 * z.mean;
       }}},
      {"z_loss",
       {{"entropy", term_of("sub lse target")}, {"z", term_of("mul 0.01 mul lse lse")}},
       {[](const Knows& z) { return z.lse - z.target; },
        [](const Knows& z) { return 0.01 * z.lse * z.lse; }}},
      {"focal",
       {{"focal", term_of(std::string("mul pow ") + others + " 2 sub lse target")}},
       {[](const Knows& z) { return floor_of(1 - probability(z), 1e-6).square() * (z.lse - z.target); }}},
      {"unlikelihood",
       {{"unlikely", term_of(std::string("where lt weight 0 neg log ") + others + " sub lse target")}},
       {[](const Knows& z) {
         return at::where(z.weight.lt(0), -floor_of(1 - probability(z), 1e-6).log(), z.lse - z.target);
       }}},
      {"confidence", {{"confidence", term_of("add sub lse target mul 0.1 sub px lse")}}, {[](const Knows& z) {
         return z.lse - z.target + 0.1 * (z.px - z.lse);
       }}},
      {"everything",
       {{"all", term_of("add mul tanh mul 0.3 most sub px mean add mul sigmoid target mul lse 0.5 "
                        "mul mul 0.1 position mul most 0.05")},
        {"rest", term_of("mul sub lse target exp mul 0.1 sub mean target")}},
       {[](const Knows& z) {
          return at::tanh(0.3 * z.max) * (z.px - z.mean) + at::sigmoid(z.target) * z.lse * 0.5 +
                 0.1 * z.position * (z.max * 0.05);
        },
        [](const Knows& z) { return (z.lse - z.target) * (0.1 * (z.mean - z.target)).exp(); }}},
  };
}

class TokenLossTest : public testing::TestWithParam<bool> {
 protected:
  TokenLossTest() {
    at::manual_seed(8);
    LlamaConfig llama;
    llama.width = 32, llama.layers = 2, llama.heads = 4, llama.kv_heads = 2, llama.ffn_width = 48;
    llama.vocab_size = kVocab, llama.tied = GetParam();
    config_.value = llama;
    units_ = std::make_unique<LocalUnits>(model_layout(config_).units, at::kFloat, at::kCPU, UnitUse::kTrain);
    for (const OwnedRange& range : units_->owned()) initialise(range, 11);
    for (GatheredUnit& unit : units_->gathered())
      for (const at::Tensor& param : unit.params()) param.mul_(3);  // logits that differ
    tokens_ = at::randint(kVocab, {kBatch, kSeq}, at::kInt);
    targets_ = at::randint(kVocab, {kBatch, kSeq}, at::kInt);
    weights_ = at::randint(1, 6, {kBatch, kSeq}, at::kFloat) / 4;
    targets_.select(1, 1).fill_(-100), weights_.select(1, 1).zero_();
    weights_.select(1, 4).neg_();
  }

  Knows knows(const DecoderOracle& oracle) const {
    const at::Tensor z = oracle.logits(tokens_).view({-1, kVocab});
    const at::Tensor at = targets_.reshape(-1).to(at::kLong).clamp_min(0).unsqueeze(1);
    return {z.logsumexp(1),
            z.gather(1, at).squeeze(1),
            z.mean(1),
            z.amax(1),
            (at::softmax(z, 1) * z).sum(1),
            weights_.reshape(-1).to(at::kDouble),
            at::arange(kSeq, at::kDouble).repeat({kBatch})};
  }

  ModelConfig config_;
  std::unique_ptr<LocalUnits> units_;
  at::Tensor tokens_, targets_, weights_;
};

TEST_P(TokenLossTest, LossesAndEveryGradientEqualAutograd) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    std::map<std::string, at::Tensor> params;
    for (GatheredUnit& unit : units_->gathered())
      for (size_t i = 0; i < unit.spec().params.size(); ++i)
        params[unit.spec().params[i].name] = unit.params()[i];
    const DecoderOracle oracle(decoder_spec(config_), params);
    const Knows z = knows(oracle);
    const at::Tensor weight = z.weight.abs() * targets_.reshape(-1).ge(0);
    const at::Tensor entropy = (weight * (z.lse - z.target)).sum();
    std::vector<at::Tensor> wanted = {entropy};
    for (const Terms& term : c.wanted) wanted.push_back((weight * term(z)).sum());
    at::Tensor total = c.wanted.empty() ? entropy : at::stack(wanted).narrow(0, 1, c.wanted.size()).sum();
    (total * 0.125).backward();

    Model model(config_, *units_, {kBatch, kSeq}, at::kFloat, at::kCPU, {}, {}, {}, TokenLoss(c.terms));
    const MicroBatch micro = {.tokens_N = tokens_.reshape(-1),
                              .targets_N = targets_.reshape(-1),
                              .weights_N = weights_.reshape(-1)};
    const at::Tensor sums = model.forward_backward(micro, at::full({1}, 0.125f));
    ASSERT_EQ(sums.numel(), std::ssize(wanted));
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_NEAR(sums[static_cast<int64_t>(i)].item<double>(), wanted[i].item<double>(),
                  1e-6 * std::max(1.0, std::abs(wanted[i].item<double>())))
          << "loss " << i;
    double largest = 0;
    for (const auto& [name, leaf] : oracle.weights())
      largest = std::max(largest, leaf.grad().norm().item<double>());
    for (GatheredUnit& unit : units_->gathered())
      for (size_t i = 0; i < unit.spec().params.size(); ++i) {
        const at::Tensor gradient = oracle.weights().at(unit.spec().params[i].name).grad();
        const double error = (unit.grads()[i].to(at::kDouble) - gradient).norm().item<double>();
        EXPECT_LE(error, 1e-5 * gradient.norm().item<double>() + 1e-6 * largest)
            << unit.spec().params[i].name;
      }
    const at::Tensor evaluated = model.all_losses(micro).sum(1, false, at::kDouble);
    EXPECT_TRUE(at::allclose(evaluated, sums, 1e-6, 1e-6));
  }
}

TEST_P(TokenLossTest, WeightsOfOneGiveTheFusedCrossEntropy) {
  MicroBatch micro = {.tokens_N = tokens_.reshape(-1), .targets_N = targets_.reshape(-1)};
  const at::Tensor weight_1 = at::full({1}, 0.5f);
  Model fused(config_, *units_, {kBatch, kSeq}, at::kFloat, at::kCPU);
  const double loss = fused.forward_backward(micro, weight_1).item<double>();
  std::vector<at::Tensor> gradients;
  for (GatheredUnit& unit : units_->gathered())
    for (const at::Tensor& gradient : unit.grads()) gradients.push_back(gradient.clone());
  Model model(config_, *units_, {kBatch, kSeq}, at::kFloat, at::kCPU, {}, {}, {}, TokenLoss(LossTerms{}));
  EXPECT_EQ(model.forward_backward(micro, weight_1).item<double>(), loss) << "without weights, bit for bit";
  micro.weights_N = at::ones({kBatch * kSeq}, at::kFloat);
  EXPECT_NEAR(model.forward_backward(micro, weight_1).item<double>(), loss, 1e-6 * loss);
  size_t i = 0;
  for (GatheredUnit& unit : units_->gathered())
    for (const at::Tensor& gradient : unit.grads())
      EXPECT_LE((gradient - gradients[i++]).norm().item<double>(), 1e-5 * gradient.norm().item<double>());
}

TEST_P(TokenLossTest, AnInfiniteLossOfAnIgnoredTargetIsNothing) {
  const LossTerms terms = {{"a", term_of("div 1 sub target target")}, {"b", term_of("log sub lse lse")}};
  targets_.fill_(-100);
  Model model(config_, *units_, {kBatch, kSeq}, at::kFloat, at::kCPU, {}, {}, {}, TokenLoss(terms));
  const at::Tensor sums = model.forward_backward(
      {.tokens_N = tokens_.reshape(-1), .targets_N = targets_.reshape(-1)}, at::full({1}, 1.0f));
  EXPECT_EQ(sums.abs().sum().item<double>(), 0);
  for (GatheredUnit& unit : units_->gathered())
    for (const at::Tensor& gradient : unit.grads()) EXPECT_EQ(gradient.abs().sum().item<float>(), 0.0f);
}

INSTANTIATE_TEST_SUITE_P(Heads, TokenLossTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Tied" : "Untied"; });

}  // namespace
}  // namespace tycho
