// Models of transformers, computed here: losses, every gradient and greedy texts must be those of
// transformers.
#include "tests/trainer/saving/oracle_model.h"
#include "trainer/models/decode_batch.h"

namespace tycho {
namespace {

class HfOracles : public testing::TestWithParam<const char*> {
 protected:
  HfOracles() {
    // ALiBi has no table: sequences may be longer than config.json says.
    if (model_.config.is<MptConfig>()) std::get<MptConfig>(model_.config.value).max_seq_len = 128;
  }
  OracleModel model_{golden_model(GetParam()),
                     std::string(TYCHO_GOLDEN_DIR) + "/hf_oracles/" + GetParam() + ".safetensors"};
  const c10::InferenceMode no_autograd_;
};

TEST_P(HfOracles, AnAwkwardBatchHasTransformersLossesAndGradients) {
  EXPECT_EQ(model_.wanted("losses")[1].item<double>(), 0);  // the row whose labels are all ignored
  model_.expect_losses_and_gradients();
}

/// The likeliest tokens after the prompts, one after the other.
std::vector<int32_t> greedy(Decoder& decoder, const Tensor& prompt_N, int64_t count) {
  std::vector<int32_t> text;
  Tensor logits_BV = decoder.next_logits(prompt_N);
  for (int64_t i = 0; i < count; ++i) {
    const Tensor next_B = logits_BV.argmax(1).to(at::kInt);
    text.push_back(next_B[0].item<int32_t>());
    if (i + 1 < count) logits_BV = decoder.next_logits(next_B);
  }
  return text;
}

TEST_P(HfOracles, GreedyTextsAreTransformersTokenForToken) {
  LocalUnits units = model_.load(UnitUse::kInfer);
  for (int i = 0; i < 3; ++i) {
    const Tensor &prompt = model_.wanted("prompt." + std::to_string(i)),
                 &wanted = model_.wanted("greedy." + std::to_string(i));
    const std::vector<int32_t> tokens(wanted.const_data_ptr<int32_t>(),
                                      wanted.const_data_ptr<int32_t>() + wanted.numel());
    for (int64_t batch : {1, 3}) {
      Decoder decoder(model_.config, units, batch, prompt.numel() + wanted.numel(), at::kFloat, at::kCPU);
      EXPECT_EQ(greedy(decoder, prompt.repeat({batch}), wanted.numel()), tokens) << i << " of " << batch;
    }
  }
}

// Prompts of different lengths, side by side.
TEST_P(HfOracles, TextsThatGrowTogetherAreTransformersTokenForToken) {
  LocalUnits units = model_.load(UnitUse::kInfer);
  std::vector<TextToGrow> texts;
  std::vector<std::vector<int32_t>> wanted, written;
  const auto numbers = [](const Tensor& from) {
    return std::vector<int32_t>(from.const_data_ptr<int32_t>(),
                                from.const_data_ptr<int32_t>() + from.numel());
  };
  for (int i = 0; i < 3; ++i) {
    wanted.push_back(numbers(model_.wanted("greedy." + std::to_string(i))));
    texts.push_back({numbers(model_.wanted("prompt." + std::to_string(i))), std::ssize(wanted.back())});
  }
  written.resize(texts.size());
  const auto make_decoder = [&](int64_t batch, int64_t num_positions) {
    EXPECT_EQ(batch, 3);
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

INSTANTIATE_TEST_SUITE_P(Golden, HfOracles, testing::Values("llama", "llama_sharded", "gpt2", "mpt"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tycho
