// Models of transformers, read and computed here: the logits and the loss must be those of transformers.
#include "trainer/saving/initial_weights.h"

#include "tests/trainer/huggingface/convert_fixture.h"
#include "trainer/huggingface/hf_import.h"
#include "trainer/models/decoder.h"
#include "trainer/models/model.h"

namespace tycho {
namespace {

constexpr int64_t kBatch = 2, kSeq = 16;

Tensor expected(const std::string& model, const std::string& name) {
  const std::string path = golden_model(model) + "/expected.safetensors";
  for (const SafetensorsEntry& entry : read_safetensors_header(path).entries)
    if (entry.name == name) {
      const std::string bytes = tensors_of_file(path).at(name);
      return at::from_blob(const_cast<char*>(bytes.data()), entry.shape,
                           at::TensorOptions().dtype(entry.dtype == "I32" ? at::kInt : at::kFloat))
          .clone();
    }
  throw Error("no tensor " + name + " in " + path);
}

ModelConfig config_of(const std::string& name) {
  return read_hf_config(read_hf_config_file(golden_model(name)), name).model;
}

LocalUnits units_for(const ModelConfig& config) {
  return LocalUnits(model_layout(config).units, at::kFloat, at::kCPU, UnitUse::kInfer);
}

/// Of all positions, one token at a time through the cache: [B, T, V].
Tensor logits_of(const ModelConfig& config, LocalUnits& units, const Tensor& ids_BT) {
  std::vector<Tensor> rows;
  for (int64_t b = 0; b < ids_BT.size(0); ++b) {
    Decoder decoder(config, units, 1, kSeq, at::kFloat, at::kCPU);
    std::vector<Tensor> steps;
    for (int64_t t = 0; t < ids_BT.size(1); ++t)
      steps.push_back(decoder.next_logits(ids_BT[b].slice(0, t, t + 1).contiguous()).select(0, 0).clone());
    rows.push_back(at::stack(steps));
  }
  return at::stack(rows);
}

double relative_error(const Tensor& a, const Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>() / b.abs().max().item<double>();
}

class TransformersModel : public testing::TestWithParam<const char*> {};

TEST_P(TransformersModel, HasTheSameLogitsHere) {
  const c10::InferenceMode no_autograd;
  const ModelConfig config = config_of(GetParam());
  LocalUnits units = units_for(config);
  load_initial_weights(golden_model(GetParam()), config, units.owned());
  EXPECT_LT(
      relative_error(logits_of(config, units, expected(GetParam(), "ids")), expected(GetParam(), "logits")),
      1e-5);
}

TEST_P(TransformersModel, HasTheSameLossHere) {
  const c10::InferenceMode no_autograd;
  const ModelConfig config = config_of(GetParam());
  LocalUnits units = units_for(config);
  load_initial_weights(golden_model(GetParam()), config, units.owned());
  Model model(config, units, {kBatch, kSeq}, at::kFloat, at::kCPU);
  const Tensor ids_BT = expected(GetParam(), "ids");
  Tensor targets_BT = at::full_like(ids_BT, -100);
  targets_BT.slice(1, 0, kSeq - 1).copy_(ids_BT.slice(1, 1, kSeq));
  const Tensor losses = model.losses(ids_BT.reshape({-1}), targets_BT.reshape({-1}));
  const double mean = losses.sum(at::kDouble).item<double>() / static_cast<double>(kBatch * (kSeq - 1));
  EXPECT_NEAR(mean, expected(GetParam(), "loss").item<float>(), 1e-5 * mean);
}

TEST_P(TransformersModel, IsTheSameThroughACheckpoint) {
  const c10::InferenceMode no_autograd;
  const TempDir dir;
  import_hf(real_files(), golden_model(GetParam()), dir / "run");
  const ModelConfig config = config_of(GetParam());
  LocalUnits direct = units_for(config), imported = units_for(config);
  load_initial_weights(golden_model(GetParam()), config, direct.owned());
  load_initial_weights(dir / "run", config, imported.owned());
  for (size_t i = 0; i < direct.owned().size(); ++i)
    EXPECT_TRUE(at::equal(direct.owned()[i].params, imported.owned()[i].params)) << i;
  EXPECT_EQ(files_beside_weights(golden_model(GetParam())), files_beside_weights(dir / "run"));
}

INSTANTIATE_TEST_SUITE_P(Golden, TransformersModel, testing::Values("llama", "llama_sharded", "gpt2", "mpt"),
                         [](const auto& info) { return std::string(info.param); });

TEST(InitialWeights, RefuseAnotherModel) {
  const ModelConfig config = config_of("gpt2");
  LocalUnits units = units_for(config);
  const std::string text = message_of(
      ExitCode::kUnusable, [&] { load_initial_weights(golden_model("llama"), config, units.owned()); });
  expect_contains(text, "transformer.wte.weight [101, 48] is missing");
}

}  // namespace
}  // namespace tycho
