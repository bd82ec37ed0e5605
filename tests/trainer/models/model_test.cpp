// The static program against an autograd model: loss and every parameter's gradient.
#include "trainer/models/model.h"

#include <gtest/gtest.h>

#include "tests/trainer/models/decoder_oracle.h"
#include "trainer/units/init.h"

namespace tycho {
namespace {

// A sequence of one token has no gradient in q and k but what rounding leaves, and neither has a bias of all
// keys.
constexpr double kRounding = 1e-6, kRoundingBf16 = 1e-2;

struct Case {
  const char* name;
  ModelConfig config;
  BatchShape shape;
  double bf16_slack = 1;  // clamps and caps bend where bf16 rounds
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

LlamaConfig llama(int64_t width, int64_t layers, int64_t heads, int64_t kv_heads, int64_t ffn, int64_t vocab,
                  bool tied) {
  LlamaConfig c;
  c.width = width, c.layers = layers, c.heads = heads, c.kv_heads = kv_heads;
  c.ffn_width = ffn, c.vocab_size = vocab, c.tied = tied;
  c.init_std = 0.2;  // far from linear: small weights would hide wrong terms
  c.rope_theta = 10000;
  return c;
}

MptConfig mpt(PositionKind positions) {
  MptConfig c;
  c.width = 48, c.layers = 2, c.heads = 6, c.vocab_size = 90, c.max_seq_len = 70;
  c.expansion_ratio = 2;
  c.positions = positions;
  return c;
}

std::vector<Case> cases() {
  std::vector<Case> all = {{"tied_gqa", {llama(32, 2, 4, 2, 64, 97, true)}, {2, 16}},
                           {"untied_mqa", {llama(48, 3, 6, 1, 40, 130, false)}, {1, 33}},
                           {"plain_heads", {llama(64, 2, 4, 4, 96, 256, false)}, {3, 8}}};
  LlamaConfig wide = llama(40, 1, 3, 1, 24, 67, false), biased = llama(32, 2, 4, 2, 48, 60, false);
  wide.head_width = 14;
  biased.attention_bias = biased.ffn_bias = true;
  all.push_back({"wide_heads", {wide}, {1, 1}});
  all.push_back({"llama_biases", {biased}, {2, 12}});

  all.push_back({"mpt_learned", {mpt(PositionKind::kLearned)}, {2, 33}});
  all.push_back({"mpt_alibi", {mpt(PositionKind::kAlibi)}, {1, 70}});
  MptConfig rope = mpt(PositionKind::kRope), normed = mpt(PositionKind::kAlibi),
            capped = mpt(PositionKind::kNone);
  rope.no_bias = true, rope.kv_heads = 2, rope.norm = MptNorm::kRmsNorm, rope.ffn = MptFfn::kGlu;
  rope.activation = Activation::kSilu, rope.tied = false, rope.qk_gn = true;
  normed.clip_qkv = 0.8, normed.qk_ln = true, normed.kv_heads = 3, normed.sliding_window = 9;
  normed.activation = Activation::kQuickGelu;
  capped.attn_softcap = 1.5, capped.final_softcap = 4.0, capped.logit_scale = 0.7, capped.softmax_scale = 0.3;
  capped.embedding_fraction = 0.1, capped.ffn_width = 56, capped.activation = Activation::kRelu;
  all.push_back({"mpt_rope_gqa_glu_qk_gn", {rope}, {2, 17}});
  all.push_back({"mpt_clip_qk_ln_window", {normed}, {1, 40}, 3});
  all.push_back({"mpt_caps", {capped}, {3, 11}, 3});

  Gpt2Config gpt2;
  gpt2.width = 40, gpt2.layers = 2, gpt2.heads = 4, gpt2.vocab_size = 77, gpt2.max_seq_len = 40,
  gpt2.init_std = 0.2;
  all.push_back({"gpt2", {gpt2}, {2, 35}});
  gpt2.tied = false, gpt2.ffn_width = 24;
  all.push_back({"gpt2_untied", {gpt2}, {1, 40}});
  return all;
}

class ModelTest : public testing::TestWithParam<std::tuple<Case, at::ScalarType>> {
 protected:
  void SetUp() override {
    at::manual_seed(5);
    config_ = std::get<0>(GetParam()).config;
    shape_ = std::get<0>(GetParam()).shape;
    dtype_ = std::get<1>(GetParam());
    units_ = std::make_unique<LocalUnits>(
        make_units(model_layout(config_).units, dtype_, at::kCPU, FlatUnit::Use::kTrain));
    for (FlatUnit& unit : units_->owned()) {
      initialise(unit, 11);
      // Biases start at 0 and norms at 1, where wrong terms would not show.
      for (const at::Tensor& param : unit.params())
        if (param.dim() == 1) param.add_(at::randn(param.sizes()).mul_(0.2));
    }
    tokens_ = at::randint(vocab_size(), {shape_.batch, shape_.seq}, at::kInt);
    targets_ = at::randint(vocab_size(), {shape_.batch, shape_.seq}, at::kInt);
    if (shape_.seq > 2) targets_.select(1, 1).fill_(-100);
  }
  int64_t vocab_size() const { return decoder_spec(config_).vocab_size; }
  DecoderOracle oracle() {
    std::map<std::string, at::Tensor> weights;
    for (FlatUnit& unit : units_->owned())
      for (size_t i = 0; i < unit.spec().params.size(); ++i)
        weights[unit.spec().params[i].name] = unit.params()[i];
    return DecoderOracle(decoder_spec(config_), weights);
  }
  // bf16 keeps 8 bits, and rounds at every op on the way.
  double tolerance() const { return dtype_ == at::kFloat ? 2e-5 : 6e-2 * std::get<0>(GetParam()).bf16_slack; }
  void expect_gradients(const DecoderOracle& oracle) {
    for (FlatUnit& unit : units_->owned())
      for (size_t i = 0; i < unit.spec().params.size(); ++i) {
        const at::Tensor wanted = oracle.weights().at(unit.spec().params[i].name).grad();
        const double error = (unit.grads()[i].to(at::kDouble) - wanted).norm().item<double>();
        EXPECT_LE(error, tolerance() * wanted.norm().item<double>() +
                             (dtype_ == at::kFloat ? kRounding : kRoundingBf16))
            << unit.spec().params[i].name;
      }
  }

  ModelConfig config_;
  BatchShape shape_;
  at::ScalarType dtype_ = at::kFloat;
  std::unique_ptr<LocalUnits> units_;
  at::Tensor tokens_, targets_;
};

TEST_P(ModelTest, LossAndEveryGradientEqualAutograd) {
  Model model(config_, *units_, shape_, dtype_, at::kCPU);
  const double weight = 0.125;
  const at::Tensor loss = model.forward_backward({tokens_.reshape(-1), targets_.reshape(-1), true, true},
                                                 at::full({1}, weight, at::kFloat));
  const DecoderOracle reference = oracle();
  const at::Tensor wanted = reference.loss_sum(tokens_, targets_);
  EXPECT_NEAR(loss.item<double>(), wanted.item<double>(), tolerance() * std::abs(wanted.item<double>()));
  (wanted * weight).backward();
  expect_gradients(reference);
}

TEST_P(ModelTest, MicroBatchesAddUp) {
  Model model(config_, *units_, {1, shape_.seq}, dtype_, at::kCPU);
  const at::Tensor weight_1 = at::full({1}, 0.5, at::kFloat);
  double loss = 0;
  // Twice: the second step must not see gradients of the first.
  for (int step = 0; step < 2; ++step) {
    loss = 0;
    for (int64_t b = 0; b < shape_.batch; ++b)
      loss += model
                  .forward_backward(
                      {tokens_[b].contiguous(), targets_[b].contiguous(), b == 0, b + 1 == shape_.batch},
                      weight_1)
                  .item<double>();
  }
  const DecoderOracle reference = oracle();
  const at::Tensor wanted = reference.loss_sum(tokens_, targets_);
  EXPECT_NEAR(loss, wanted.item<double>(), tolerance() * std::abs(wanted.item<double>()));
  (wanted * 0.5).backward();
  expect_gradients(reference);
}

TEST_P(ModelTest, DecodingOneByOneEqualsTheWholeSequence) {
  const at::Tensor row = tokens_.narrow(0, 0, 1);
  const at::Tensor wanted = oracle().logits(row).select(0, 0);
  Decoder decoder(config_, *units_, 1, shape_.seq, dtype_, at::kCPU);
  const int64_t prompt = std::max<int64_t>(1, shape_.seq / 2);
  for (int64_t t = 0; t < shape_.seq; t = decoder.length()) {
    const int64_t count = t == 0 ? prompt : 1;
    const at::Tensor logits = decoder.next_logits(row[0].narrow(0, t, count).contiguous());
    const at::Tensor expected = wanted[t + count - 1];
    EXPECT_LE((logits[0].to(at::kDouble) - expected).norm().item<double>(),
              tolerance() * expected.norm().item<double>())
        << "position " << t;
  }
}

TEST_P(ModelTest, TheSameStepTwiceGivesTheSameBits) {
  Model model(config_, *units_, shape_, dtype_, at::kCPU);
  const MicroBatch micro = {tokens_.reshape(-1), targets_.reshape(-1), true, true};
  const at::Tensor weight_1 = at::ones({1}, at::kFloat);
  model.forward_backward(micro, weight_1);
  std::vector<at::Tensor> first;
  for (FlatUnit& unit : units_->owned()) first.push_back(unit.flat_grads().clone());
  model.forward_backward(micro, weight_1);
  for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(at::equal(first[i], units_->owned()[i].flat_grads()));
}

TEST_P(ModelTest, ComputingAgainGivesTheSameBits) {
  const MicroBatch micro = {tokens_.reshape(-1), targets_.reshape(-1), true, true};
  const at::Tensor weight_1 = at::ones({1}, at::kFloat);
  Model(config_, *units_, shape_, dtype_, at::kCPU).forward_backward(micro, weight_1);
  std::vector<at::Tensor> kept;
  for (FlatUnit& unit : units_->owned()) kept.push_back(unit.flat_grads().clone());
  for (const RecomputeConfig& recompute :
       {RecomputeConfig{Recompute::kSelective, 1}, RecomputeConfig{Recompute::kFull, 1},
        RecomputeConfig{Recompute::kFull, 2}}) {
    for (FlatUnit& unit : units_->owned()) unit.flat_grads().fill_(7);
    Model(config_, *units_, shape_, dtype_, at::kCPU, recompute).forward_backward(micro, weight_1);
    for (size_t i = 0; i < kept.size(); ++i)
      EXPECT_TRUE(at::equal(kept[i], units_->owned()[i].flat_grads())) << "unit " << i;
  }
}

TEST_P(ModelTest, LossesAloneAreThoseOfTraining) {
  Model model(config_, *units_, shape_, dtype_, at::kCPU);
  const double trained = model
                             .forward_backward({tokens_.reshape(-1), targets_.reshape(-1), true, true},
                                               at::ones({1}, at::kFloat))
                             .item<double>();
  EXPECT_EQ(model.losses(tokens_.reshape(-1), targets_.reshape(-1)).sum(at::kDouble).item<double>(), trained);
}

TEST(Dropout, IsDrawnFromItsKeyAndIsNotThereWithoutGradients) {
  Gpt2Config gpt2;
  gpt2.width = 32, gpt2.layers = 2, gpt2.heads = 2, gpt2.vocab_size = 50, gpt2.max_seq_len = 16;
  gpt2.resid_dropout = gpt2.embedding_dropout = 0.3;
  const ModelConfig config{gpt2};
  LocalUnits units(make_units(model_layout(config).units, at::kFloat, at::kCPU, FlatUnit::Use::kTrain));
  for (FlatUnit& unit : units.owned()) initialise(unit, 3);
  const at::Tensor tokens = at::randint(50, {32}, at::kInt), weight_1 = at::ones({1}, at::kFloat);
  const auto loss = [&](uint64_t key, const RecomputeConfig& recompute) {
    Model model(config, units, {2, 16}, at::kFloat, at::kCPU, recompute);
    const double sum = model.forward_backward({tokens, tokens, true, true, key}, weight_1).item<double>();
    return std::pair(sum, units.owned()[1].flat_grads().clone());
  };
  const auto [first, grads] = loss(1, {});
  EXPECT_EQ(loss(1, {}).first, first);
  EXPECT_NE(loss(2, {}).first, first);
  EXPECT_TRUE(at::equal(loss(1, {Recompute::kFull, 1}).second, grads));
  Model model(config, units, {2, 16}, at::kFloat, at::kCPU);
  const double without = model.losses(tokens, tokens).sum(at::kDouble).item<double>();
  model.forward_backward({tokens, tokens, true, true, 9}, weight_1);
  EXPECT_EQ(model.losses(tokens, tokens).sum(at::kDouble).item<double>(), without);
  EXPECT_NE(without, first);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ModelTest,
                         testing::Combine(testing::ValuesIn(cases()),
                                          testing::Values(at::kFloat, at::kBFloat16)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  (std::get<1>(info.param) == at::kFloat ? "_fp32" : "_bf16");
                         });

}  // namespace
}  // namespace tycho
