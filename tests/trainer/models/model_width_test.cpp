// Rows that are narrower than a model's: the numbers of a model that was made for them, in the same memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/trainer/models/model_cases.h"
#include "trainer/models/model.h"
#include "trainer/sharding/arena.h"
#include "trainer/sharding/init.h"

namespace tycho {
namespace {

class ModelWidth : public testing::TestWithParam<ModelCase> {
 protected:
  void SetUp() override {
    at::manual_seed(5);
    units_ = std::make_unique<LocalUnits>(model_layout(config_).units, at::kFloat, at::kCPU, UnitUse::kTrain);
    for (const OwnedRange& range : units_->owned()) initialise(range, 11);
    const int64_t vocab = decoder_spec(config_).vocab_size;
    tokens_BT_ = at::randint(vocab, {shape_.batch, shape_.seq}, at::kInt);
    targets_BT_ = at::randint(vocab, {shape_.batch, shape_.seq}, at::kInt);
  }
  MicroBatch micro_batch(int64_t width) const {
    const auto rows = [&](const Tensor& x_BT) { return x_BT.narrow(1, 0, width).contiguous().view(-1); };
    return {.tokens_N = rows(tokens_BT_), .targets_N = rows(targets_BT_), .dropout_key = 3};
  }
  /// The loss, and every gradient after it.
  std::vector<Tensor> trained(Model& model, int64_t width) {
    std::vector<Tensor> numbers = {model.forward_backward(micro_batch(width), weight_1_).clone()};
    for (const OwnedRange& range : units_->owned()) numbers.push_back(range.grads.clone());
    return numbers;
  }
  static void expect_same(const std::vector<Tensor>& given, const std::vector<Tensor>& wanted) {
    ASSERT_EQ(given.size(), wanted.size());
    for (size_t i = 0; i < given.size(); ++i) EXPECT_TRUE(at::equal(given[i], wanted[i])) << i;
  }
  /// Whether frequencies depend on the longest row that a model can have.
  bool is_dynamic() const {
    return std::ranges::any_of(decoder_spec(config_).positions.rotary, [](const RotarySpec& rotary) {
      return rotary.scaling.type == RopeScaling::kDynamic;
    });
  }

  ModelConfig config_ = GetParam().config;
  BatchShape shape_ = GetParam().shape;
  std::unique_ptr<LocalUnits> units_;
  Tensor tokens_BT_, targets_BT_;
  Tensor weight_1_ = at::full({1}, 0.125, at::kFloat);
};

TEST_P(ModelWidth, NarrowerRowsHaveTheNumbersOfAModelThatIsMadeForThem) {
  Model model(config_, *units_, shape_, at::kFloat, at::kCPU);
  const std::vector<Tensor> whole = trained(model, shape_.seq);
  const int64_t memory = arena_bytes();
  for (int64_t width = 1; width < shape_.seq && !is_dynamic(); ++width) {
    const std::vector<Tensor> narrow = trained(model.at_width(width), width);
    EXPECT_EQ(arena_bytes(), memory);
    Model made(config_, *units_, {shape_.batch, width}, at::kFloat, at::kCPU);
    expect_same(narrow, trained(made, width));
  }
  expect_same(trained(model, shape_.seq), whole);
  EXPECT_THROW(model.at_width(shape_.seq + 1), Error);
  EXPECT_THROW(model.at_width(0), Error);
}

// What comes behind a token changes nothing of its loss but the order of sums: 335 units of 2^-24 of the
// norm, as for a whole model against autograd.
TEST_P(ModelWidth, LossesAreThoseOfTheSameTokensInWholeRows) {
  Model model(config_, *units_, shape_, at::kFloat, at::kCPU);
  const MicroBatch rows = micro_batch(shape_.seq);
  const Tensor whole_BT = model.losses(rows.tokens_N, rows.targets_N).clone().view({shape_.batch, -1});
  for (int64_t width = 1; width < shape_.seq; ++width) {
    const MicroBatch narrow = micro_batch(width);
    const Tensor losses_N = model.at_width(width).losses(narrow.tokens_N, narrow.targets_N);
    const Tensor error_BT = losses_N.view({shape_.batch, width}) - whole_BT.narrow(1, 0, width);
    EXPECT_LE(error_BT.norm().item<double>(), 2e-5 * whole_BT.norm().item<double>()) << width;
  }
}

TEST_P(ModelWidth, NoWidthNeedsMoreMemoryThanAWiderOne) {
  const auto bytes = [&](int64_t seq, bool on_gpu, const CpShape& cp) {
    return Activations::bytes(activation_specs(config_, {3, seq}, 2, on_gpu, {}, cp), {}, at::kBFloat16);
  };
  for (const bool on_gpu : {false, true})
    for (const CpShape& cp : {CpShape{}, CpShape{2, 1, false}, CpShape{2, 0, true}})
      for (int64_t seq = 64; seq < 4096; seq += 64)
        EXPECT_LE(bytes(seq, on_gpu, cp), bytes(seq + 64, on_gpu, cp)) << seq;
}

INSTANTIATE_TEST_SUITE_P(Shapes, ModelWidth, testing::ValuesIn(model_cases()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tycho
