// Adapters of peft, computed here: losses, logits and the gradients of every adapter must be peft's.
#include "tests/trainer/saving/oracle_model.h"
#include "trainer/huggingface/hf_export.h"
#include "trainer/huggingface/peft_export.h"
#include "trainer/recipe/config_io.h"
#include "trainer/saving/unit_tensors.h"
#include "trainer/sharding/init.h"

namespace tycho {
namespace {

struct AdapterCase {
  const char *name, *base;
  LoraConfig lora;
};
void PrintTo(const AdapterCase& c, std::ostream* out) { *out << c.name; }

class PeftOracles : public testing::TestWithParam<AdapterCase> {
 protected:
  PeftOracles() : model_(golden_model(GetParam().base), oracle()) {
    model_.config.lora = GetParam().lora;
    std::visit([](auto& family) { family.weights = golden_model(GetParam().base); }, model_.config.value);
  }
  static std::string oracle() {
    return std::string(TYCHO_GOLDEN_DIR) + "/peft_oracles/" + GetParam().name + ".safetensors";
  }
  /// The base is frozen, as in a run.
  std::vector<UnitSpec> specs() const {
    std::vector<UnitSpec> units = model_layout(model_.config).units;
    for (UnitSpec& unit : units)
      for (ParamSpec& param : unit.params) param.frozen = unit.base;
    return units;
  }
  LocalUnits load(UnitUse use) const {
    LocalUnits units(specs(), at::kFloat, at::kCPU, use);
    load_base(model_.config, units.owned());
    for (GatheredUnit& unit : units.gathered())
      for (size_t i = 0; unit.spec().adapts >= 0 && i < unit.spec().params.size(); ++i)
        Tensor(unit.params()[i]).copy_(model_.wanted("adapter." + unit.spec().params[i].name));
    return units;
  }

  /// As a run saves them: nothing of the base.
  CheckpointInfo save_adapters(const TempDir& dir) {
    LocalUnits units = load(UnitUse::kInfer);
    TrainConfig config;
    config.model = model_.config;
    config.seq_len = 16;
    const std::vector<OwnedRange> saved = saved_ranges(units.owned());
    std::vector<TensorBytes> tensors;
    for (const FlatState& state : flat_states(saved, nullptr))
      for (TensorBytes& tensor : unit_tensor_bytes(state, state.flat)) tensors.push_back(std::move(tensor));
    EXPECT_EQ(tensors.size(), model_.count("adapter."));
    CheckpointMeta meta{.recipe = config_to_json(config),
                        .files = files_beside_weights(golden_model(GetParam().base))};
    return CheckpointStore(real_files(), dir / "checkpoints", 0, 1).save(meta, tensors);
  }

  OracleModel model_;
  const c10::InferenceMode no_autograd_;
};

TEST_P(PeftOracles, LossesAndGradientsOfAdaptersArePefts) {
  LocalUnits units = load(UnitUse::kTrain);
  const Tensor& ids_BT = model_.wanted("ids");
  const int64_t batch = ids_BT.size(0), seq = ids_BT.size(1);
  Model model(model_.config, units, {batch, seq}, at::kFloat, at::kCPU);
  const MicroBatch micro = {ids_BT.reshape({-1}), shifted_targets(model_.wanted("labels")).reshape({-1}),
                            true, true};
  const Tensor rows =
      model.losses(micro.tokens_N, micro.targets_N).view({batch, seq}).sum(1, false, at::kDouble);
  EXPECT_LT((rows - model_.wanted("losses")).abs().max().item<double>(),
            1e-5 * model_.wanted("losses").max().item<double>());
  model.forward_backward(micro, at::ones({1}));
  size_t compared = 0;
  for (GatheredUnit& unit : units.gathered()) {
    EXPECT_EQ(unit.flat_grads().defined(), unit.spec().adapts >= 0) << unit.spec().name;
    for (size_t i = 0; unit.spec().adapts >= 0 && i < unit.spec().params.size(); ++i) {
      const std::string& name = unit.spec().params[i].name;
      const Tensor& wanted = model_.wanted("grad." + name);
      EXPECT_LE((unit.grads()[i] - wanted).norm().item<double>(), 1e-5 * wanted.norm().item<double>() + 1e-5)
          << name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, model_.count("grad."));
}

TEST_P(PeftOracles, LogitsArePefts) {
  LocalUnits units = load(UnitUse::kInfer);
  const Tensor& ids_BT = model_.wanted("ids");
  for (int64_t b = 0; b < ids_BT.size(0); ++b) {
    Decoder decoder(model_.config, units, 1, ids_BT.size(1), at::kFloat, at::kCPU);
    const Tensor logits = decoder.next_logits(ids_BT[b].contiguous(), {.every_position = true});
    const Tensor wanted = model_.wanted("logits")[b];
    EXPECT_LE((logits - wanted).abs().max().item<double>(), 1e-5 * wanted.abs().max().item<double>());
  }
}

TEST_P(PeftOracles, MergedTheyAreAModelWithPeftsLogits) {
  const TempDir dir;
  const CheckpointReader checkpoint(save_adapters(dir));
  const ExportReport report =
      export_hf(real_files(), checkpoint, dir / "merged", {.dtype = "fp32", .merge = true});
  EXPECT_EQ(report.num_params,
            model_layout(OracleModel(golden_model(GetParam().base), oracle()).config).num_params());
  const OracleModel merged(dir / "merged", oracle());
  LocalUnits units = merged.load(UnitUse::kInfer);
  Decoder decoder(merged.config, units, 1, merged.wanted("ids").size(1), at::kFloat, at::kCPU);
  const Tensor logits = decoder.next_logits(merged.wanted("ids")[0].contiguous(), {.every_position = true});
  const Tensor wanted = merged.wanted("logits")[0];
  EXPECT_LE((logits - wanted).abs().max().item<double>(), 1e-5 * wanted.abs().max().item<double>());
}

TEST_P(PeftOracles, ExportedAloneTheyHavePeftsNamesAndSettings) {
  const TempDir dir;
  const AdapterReport report =
      export_adapters(real_files(), CheckpointReader(save_adapters(dir)), dir / "out");
  EXPECT_EQ(report.base, golden_model(GetParam().base));
  const auto tensors = tensors_of_file(dir / "out/adapter_model.safetensors");
  const auto golden = tensors_of_file(oracle());
  EXPECT_EQ(tensors.size(), model_.count("adapter."));
  for (const auto& [name, bytes] : tensors) {
    ASSERT_TRUE(name.starts_with("base_model.model.")) << name;
    EXPECT_EQ(bytes, golden.at("adapter." + name.substr(17))) << name;
  }
  const Json config = read_json_file(dir / "out/adapter_config.json");
  EXPECT_EQ(config["r"], GetParam().lora.rank);
  EXPECT_EQ(config["lora_alpha"], *GetParam().lora.alpha);
  EXPECT_EQ(config["use_rslora"], GetParam().lora.rslora);
  EXPECT_EQ(config["fan_in_fan_out"], std::string(GetParam().base) == "gpt2");
  if (std::string(GetParam().name) == "llama_some") {
    EXPECT_EQ(config["target_modules"], (Json{"model.layers.1.mlp.up_proj", "model.layers.1.self_attn.q_proj",
                                              "model.layers.1.self_attn.v_proj"}));
  }
}

TEST_P(PeftOracles, ACheckpointOfThemIsReadOverTheirModel) {
  const TempDir dir;
  const CheckpointReader checkpoint(save_adapters(dir));
  const LocalUnits wanted = load(UnitUse::kInfer);
  LocalUnits units(specs(), at::kFloat, at::kCPU, UnitUse::kInfer);
  load_trained(checkpoint, model_.config, units.owned());
  for (size_t u = 0; u < units.owned().size(); ++u)
    EXPECT_TRUE(at::equal(units.owned()[u].params, const_cast<LocalUnits&>(wanted).owned()[u].params)) << u;
  // They are no model to start from, and without theirs they are nothing.
  const std::string no_model = message_of(ExitCode::kUnusable, [&] {
    load_initial_weights(checkpoint.info().path, model_.config, units.owned());
  });
  expect_contains(no_model, "holds adapters only: merge them");
  ModelConfig moved = model_.config;
  std::visit([](auto& family) { family.weights = "/nowhere"; }, moved.value);
  const std::string lost =
      message_of(ExitCode::kUnusable, [&] { load_trained(checkpoint, moved, units.owned()); });
  expect_contains(
      lost, "[lora] the model that the adapters are for cannot be read from model.weights = \"/nowhere\"");
}

TEST(HfExport, MergesOnlyAdapters) {
  const TempDir dir;
  const CheckpointReader whole(import_hf(real_files(), golden_model("llama"), dir / "run").checkpoint);
  EXPECT_FALSE(holds_adapters(whole));
  const std::string message =
      message_of(ExitCode::kUsage, [&] { export_hf(real_files(), whole, dir / "out", {.merge = true}); });
  expect_contains(message, "holds a whole model: leave it out");
  EXPECT_FALSE(std::filesystem::exists(dir / "out"));
}

INSTANTIATE_TEST_SUITE_P(
    Golden, PeftOracles,
    testing::Values(AdapterCase{"llama", "llama", {.rank = 3, .alpha = 5}},
                    AdapterCase{"llama_some",
                                "llama",
                                {.rank = 4,
                                 .alpha = 6,
                                 .rslora = true,
                                 .targets = {"layers.1.self_attn.[qv]_proj", "1.mlp.up_proj"}}},
                    AdapterCase{"mpt", "mpt", {.rank = 3, .alpha = 5}},
                    AdapterCase{"qwen3", "../families/qwen3_tied", {.rank = 3, .alpha = 5}},
                    AdapterCase{"gemma3", "../families/gemma3_linear", {.rank = 3, .alpha = 5}},
                    // One adapter for q, k and v, and one for gate and up, as peft has them.
                    AdapterCase{"phi4_mini", "../families/phi4_mini", {.rank = 3, .alpha = 5}},
                    AdapterCase{"phi4_mini_some",
                                "../families/phi4_mini",
                                {.rank = 2, .alpha = 4, .targets = {"qkv_proj", "down_proj"}}},
                    AdapterCase{
                        "gpt2", "gpt2", {.rank = 3, .alpha = 5, .targets = {"c_attn", "c_proj", "c_fc"}}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Adapters, StartAtTheModelTheyAreFor) {
  const ModelConfig base = read_hf_config(read_hf_config_file(golden_model("llama")), "config.json").model;
  ModelConfig config = base;
  config.lora = {.rank = 4};
  for (const UnitSpec& unit : model_layout(config).units)
    for (const ParamSpec& param : unit.params) {
      if (unit.adapts < 0) continue;
      std::vector<float> values(static_cast<size_t>(numel(param.shape)));
      draw_init(param, 7, 0, std::ssize(values), values.data());
      const bool is_a = param.name.ends_with("lora_A.weight");
      const double bound = is_a ? 1 / std::sqrt(static_cast<double>(param.shape[1])) : 0;
      double largest = 0, squares = 0;
      for (const float value : values)
        largest = std::max(largest, std::abs(static_cast<double>(value))), squares += value * value;
      EXPECT_LE(largest, bound * 1.000001) << param.name;
      if (!is_a) continue;
      // torch.nn.init.kaiming_uniform_(a = sqrt 5): uniform, its variance bound² / 3.
      EXPECT_NEAR(squares / static_cast<double>(values.size()) / (bound * bound / 3), 1, 0.25) << param.name;
    }
}

}  // namespace
}  // namespace tycho
