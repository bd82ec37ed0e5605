// The static program against an autograd model: loss and every parameter's gradient.
#include "trainer/models/model.h"

#include <gtest/gtest.h>

#include "tests/trainer/models/llama_oracle.h"
#include "trainer/units/init.h"

namespace tycho {
namespace {

// A sequence of one token has no gradient in q and k but what rounding leaves.
constexpr double kRounding = 1e-6;

struct Case {
  const char* name;
  LlamaConfig config;
  BatchShape shape;
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

std::vector<Case> cases() {
  Case wide = {"wide_heads", llama(40, 1, 3, 1, 24, 67, false), {1, 1}};
  wide.config.head_width = 14;
  return {{"tied_gqa", llama(32, 2, 4, 2, 64, 97, true), {2, 16}},
          {"untied_mqa", llama(48, 3, 6, 1, 40, 130, false), {1, 33}},
          {"plain_heads", llama(64, 2, 4, 4, 96, 256, false), {3, 8}},
          wide};
}

class ModelTest : public testing::TestWithParam<std::tuple<Case, at::ScalarType>> {
 protected:
  void SetUp() override {
    at::manual_seed(5);
    config_.value = std::get<0>(GetParam()).config;
    shape_ = std::get<0>(GetParam()).shape;
    dtype_ = std::get<1>(GetParam());
    units_ = std::make_unique<LocalUnits>(
        make_units(model_layout(config_).units, dtype_, at::kCPU, FlatUnit::Use::kTrain));
    for (FlatUnit& unit : units_->owned()) initialise(unit, 11);
    tokens_ = at::randint(llama().vocab_size, {shape_.batch, shape_.seq}, at::kInt);
    targets_ = at::randint(llama().vocab_size, {shape_.batch, shape_.seq}, at::kInt);
    if (shape_.seq > 2) targets_.select(1, 1).fill_(-100);
  }
  const LlamaConfig& llama() const { return config_.as<LlamaConfig>(); }
  LlamaOracle oracle() {
    std::map<std::string, at::Tensor> weights;
    for (FlatUnit& unit : units_->owned())
      for (size_t i = 0; i < unit.spec().params.size(); ++i)
        weights[unit.spec().params[i].name] = unit.params()[i];
    return LlamaOracle(llama(), weights);
  }
  // bf16 keeps 8 bits, and rounds at every op on the way.
  double tolerance() const { return dtype_ == at::kFloat ? 2e-5 : 4e-2; }
  void expect_gradients(const LlamaOracle& oracle) {
    for (FlatUnit& unit : units_->owned())
      for (size_t i = 0; i < unit.spec().params.size(); ++i) {
        const at::Tensor wanted = oracle.weights().at(unit.spec().params[i].name).grad();
        const double error = (unit.grads()[i].to(at::kDouble) - wanted).norm().item<double>();
        EXPECT_LE(error, tolerance() * wanted.norm().item<double>() + kRounding)
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
  const LlamaOracle reference = oracle();
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
  const LlamaOracle reference = oracle();
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

INSTANTIATE_TEST_SUITE_P(Shapes, ModelTest,
                         testing::Combine(testing::ValuesIn(cases()),
                                          testing::Values(at::kFloat, at::kBFloat16)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  (std::get<1>(info.param) == at::kFloat ? "_fp32" : "_bf16");
                         });

}  // namespace
}  // namespace tycho
