// Tiny models of every dense family as transformers saves them, computed here: logits, losses, every gradient
// and greedy texts must be those of transformers.
#include <filesystem>

#include "tests/trainer/saving/oracle_model.h"
#include "trainer/models/decode_batch.h"

namespace tycho {
namespace {

std::vector<std::string> family_cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(family_folder("")))
    if (entry.is_directory()) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

class FamilyOracles : public testing::TestWithParam<std::string> {
 protected:
  OracleModel model_{family_folder(GetParam()), family_folder(GetParam()) + "/expected.safetensors"};
  const c10::InferenceMode no_autograd_;
};

TEST_P(FamilyOracles, ABatchHasTransformersLossesAndGradients) {
  // transformers gives the row of a padding token no gradient from the look-up; here it is a token as others
  // are.
  const Json pad = read_hf_config_file(family_folder(GetParam())).value("pad_token_id", Json());
  const auto row = pad.is_null() ? std::nullopt : std::optional<int64_t>(pad.get<int64_t>());
  model_.expect_losses_and_gradients(1e-6, 1e-8, row);
}

// Token by token, so the cache is tried at every position.
TEST_P(FamilyOracles, LogitsAreTransformersAtEveryPosition) {
  LocalUnits units = model_.load(UnitUse::kInfer);
  const Tensor &ids_BT = model_.wanted("ids"), &wanted_BTV = model_.wanted("logits");
  const int64_t batch = ids_BT.size(0), seq = ids_BT.size(1);
  Decoder decoder(model_.config, units, batch, seq, at::kFloat, at::kCPU);
  double worst = 0;
  for (int64_t t = 0; t < seq; ++t) {
    const Tensor logits_BV = decoder.next_logits(ids_BT.select(1, t).contiguous());
    worst = std::max(worst, (logits_BV - wanted_BTV.select(1, t)).abs().max().item<double>());
  }
  EXPECT_LT(worst, 1e-5);
}

// The reference rounds to bf16 at its own places, and its own distance from its fp32 logits says how far bf16
// is: another order of sums is another sample of the same noise. Over thousands of logits the root mean
// square is steady (0.99 of the reference's was seen); the largest one is chance (1.66 times was seen).
TEST_P(FamilyOracles, LogitsInBf16AreAsNearAsTransformersOwn) {
  LocalUnits units = model_.load(UnitUse::kInfer, at::kBFloat16);
  const Tensor &ids_BT = model_.wanted("ids"), &wanted_BTV = model_.wanted("logits");
  Decoder decoder(model_.config, units, ids_BT.size(0), ids_BT.size(1), at::kBFloat16, at::kCPU);
  const Tensor logits_NV = decoder.next_logits(ids_BT.reshape({-1}), {.every_position = true});
  const Tensor distance = (logits_NV.view(wanted_BTV.sizes()).to(at::kFloat) - wanted_BTV).to(at::kDouble);
  const Tensor own = model_.wanted("bf16_logits_distance").to(at::kDouble);
  EXPECT_LE(distance.square().mean().sqrt().item<double>(), 2 * own[1].item<double>());
  EXPECT_LE(distance.abs().max().item<double>(), 3 * own[0].item<double>());
}

std::vector<int32_t> numbers(const Tensor& from) {
  return {from.const_data_ptr<int32_t>(), from.const_data_ptr<int32_t>() + from.numel()};
}

// Prompts of different lengths, side by side.
TEST_P(FamilyOracles, GreedyTextsAreTransformersTokenForToken) {
  LocalUnits units = model_.load(UnitUse::kInfer);
  std::vector<TextToGrow> texts;
  std::vector<std::vector<int32_t>> wanted;
  for (int i = 0; i < 3; ++i) {
    wanted.push_back(numbers(model_.wanted("greedy." + std::to_string(i))));
    texts.push_back({numbers(model_.wanted("prompt." + std::to_string(i))), std::ssize(wanted.back())});
  }
  std::vector<std::vector<int32_t>> written(texts.size());
  const auto make_decoder = [&](int64_t batch, int64_t num_positions) {
    return std::make_unique<Decoder>(model_.config, units, batch, num_positions, at::kFloat, at::kCPU);
  };
  const auto next = [&](size_t i, const Tensor& logits_V) -> std::optional<int32_t> {
    written[i].push_back(logits_V.argmax().to(at::kInt).item<int32_t>());
    if (std::ssize(written[i]) == texts[i].max_tokens) return std::nullopt;
    return written[i].back();
  };
  DecodeBatch growing(model_.config, make_decoder, texts, next);
  while (!growing.done()) growing.pass();
  EXPECT_EQ(written, wanted);
}

INSTANTIATE_TEST_SUITE_P(Golden, FamilyOracles, testing::ValuesIn(family_cases()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace tycho
