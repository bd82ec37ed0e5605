// Models of transformers, computed here: losses, every gradient and greedy texts must be those of
// transformers.
#include <ATen/Functions.h>
#include <c10/core/InferenceMode.h>

#include "tests/trainer/convert/convert_fixture.h"
#include "trainer/convert/hf_import.h"
#include "trainer/models/model.h"
#include "trainer/restore/initial_weights.h"

namespace tycho {
namespace {

class HfOracles : public testing::TestWithParam<const char*> {
 protected:
  HfOracles() : config_(read_hf_config(read_hf_config_file(folder()), "config.json").model) {
    // ALiBi has no table: sequences may be longer than config.json says.
    if (config_.is<MptConfig>()) std::get<MptConfig>(config_.value).max_seq_len = 128;
    for (const SafetensorsEntry& entry : read_safetensors_header(path()).entries) {
      const auto dtype = entry.dtype == "I32" ? at::kInt : entry.dtype == "F64" ? at::kDouble : at::kFloat;
      std::string& bytes = bytes_[entry.name] = tensors_of_file(path()).at(entry.name);
      wanted_[entry.name] = at::from_blob(bytes.data(), entry.shape, at::TensorOptions().dtype(dtype));
    }
  }
  static std::string folder() { return golden_model(GetParam()); }
  static std::string path() {
    return std::string(TYCHO_GOLDEN_DIR) + "/hf_oracles/" + GetParam() + ".safetensors";
  }
  LocalUnits load(FlatUnit::Use use) {
    LocalUnits units(make_units(model_layout(config_).units, at::kFloat, at::kCPU, use));
    load_initial_weights(folder(), config_, units.owned());
    return units;
  }
  /// targets[t] = labels[t + 1], as transformers shifts them.
  Tensor targets() const {
    const Tensor& labels_BT = wanted_.at("labels");
    const int64_t seq = labels_BT.size(1);
    Tensor targets_BT = at::full_like(labels_BT, -100);
    targets_BT.slice(1, 0, seq - 1).copy_(labels_BT.slice(1, 1, seq));
    return targets_BT;
  }

  ModelConfig config_;
  std::map<std::string, std::string> bytes_;
  std::map<std::string, Tensor> wanted_;
};

TEST_P(HfOracles, AnAwkwardBatchHasTransformersLossesAndGradients) {
  const c10::InferenceMode no_autograd;
  LocalUnits units = load(FlatUnit::Use::kTrain);
  const Tensor& ids_BT = wanted_.at("ids");
  const int64_t batch = ids_BT.size(0), seq = ids_BT.size(1);
  Model model(config_, units, {batch, seq}, at::kFloat, at::kCPU);
  const Tensor tokens_N = ids_BT.reshape({-1}), targets_N = targets().reshape({-1});
  const Tensor rows = model.losses(tokens_N, targets_N).view({batch, seq}).sum(1, false, at::kDouble);
  EXPECT_LT((rows - wanted_.at("losses")).abs().max().item<double>(),
            1e-5 * wanted_.at("losses").max().item<double>());
  EXPECT_EQ(rows[1].item<double>(), 0);  // the row whose labels are all ignored
  model.forward_backward({tokens_N, targets_N, true, true}, at::ones({1}));
  int64_t compared = 0;
  for (FlatUnit& unit : units.owned())
    for (size_t i = 0; i < unit.spec().params.size(); ++i) {
      const std::string& name = unit.spec().params[i].name;
      const Tensor& wanted = wanted_.at("grad." + name);
      EXPECT_LE((unit.grads()[i] - wanted).norm().item<double>(), 1e-5 * wanted.norm().item<double>())
          << name;
      ++compared;
    }
  EXPECT_EQ(compared, std::count_if(wanted_.begin(), wanted_.end(),
                                    [](const auto& one) { return one.first.starts_with("grad."); }));
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
  const c10::InferenceMode no_autograd;
  LocalUnits units = load(FlatUnit::Use::kInfer);
  for (int i = 0; i < 3; ++i) {
    const Tensor &prompt = wanted_.at("prompt." + std::to_string(i)),
                 &wanted = wanted_.at("greedy." + std::to_string(i));
    const std::vector<int32_t> tokens(wanted.const_data_ptr<int32_t>(),
                                      wanted.const_data_ptr<int32_t>() + wanted.numel());
    for (int64_t batch : {1, 3}) {
      Decoder decoder(config_, units, batch, prompt.numel() + wanted.numel(), at::kFloat, at::kCPU);
      EXPECT_EQ(greedy(decoder, prompt.repeat({batch}), wanted.numel()), tokens) << i << " of " << batch;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Golden, HfOracles, testing::Values("llama", "llama_sharded", "gpt2", "mpt"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tycho
