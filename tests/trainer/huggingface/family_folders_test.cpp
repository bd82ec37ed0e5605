// Folders of every dense family, imported and exported again: what transformers wrote must come back.
#include <algorithm>
#include <filesystem>

#include "tests/trainer/huggingface/convert_fixture.h"
#include "trainer/base/json_writer.h"
#include "trainer/huggingface/hf_config.h"
#include "trainer/huggingface/hf_export.h"
#include "trainer/huggingface/hf_folder.h"
#include "trainer/huggingface/hf_import.h"

namespace tycho {
namespace {

std::string family_folder(const std::string& name) {
  return std::string(TYCHO_GOLDEN_DIR) + "/families/" + name;
}

std::vector<std::string> family_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(family_folder("")))
    if (entry.is_directory()) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

/// model_type of the text -> the class that transformers has for it.
const std::map<std::string, std::string> kClasses = {{"llama", "LlamaForCausalLM"},
                                                     {"qwen2", "Qwen2ForCausalLM"},
                                                     {"qwen3", "Qwen3ForCausalLM"},
                                                     {"mistral", "MistralForCausalLM"},
                                                     {"gemma2", "Gemma2ForCausalLM"},
                                                     {"gemma3_text", "Gemma3ForCausalLM"},
                                                     {"ministral3", "Ministral3ForCausalLM"},
                                                     {"olmo2", "Olmo2ForCausalLM"},
                                                     {"olmo3", "Olmo3ForCausalLM"},
                                                     {"smollm3", "SmolLM3ForCausalLM"},
                                                     {"phi3", "Phi3ForCausalLM"},
                                                     {"granite", "GraniteForCausalLM"}};

/// Returns the tensors of the text under the names of a model that has only text.
std::map<std::string, std::string> text_tensors(const std::string& folder) {
  std::map<std::string, std::string> text;
  for (auto& [name, bytes] : tensors_of_folder(folder)) {
    if (name.find("vision_tower.") != std::string::npos) continue;
    if (name.find("multi_modal_projector.") != std::string::npos) continue;
    std::string plain = name;
    if (const size_t at = plain.find("language_model."); at != std::string::npos) {
      plain = plain.substr(at + std::string("language_model.").size());
      if (!plain.starts_with("model.") && !plain.starts_with("lm_head.")) plain = "model." + plain;
    }
    text[plain] = bytes;
  }
  return text;
}

class FamilyFolders : public testing::TestWithParam<std::string> {
 protected:
  std::string from_ = family_folder(GetParam());
  TempDir dir_;
};

TEST_P(FamilyFolders, ComeBackWithTheirTensorsTheirConfigAndTheirClass) {
  const CheckpointReader reader(import_hf(real_files(), from_, dir_ / "run").checkpoint);
  const ExportReport report = export_hf(real_files(), reader, dir_ / "out", {});
  EXPECT_EQ(report.warnings, std::vector<std::string>());
  const Json given = read_hf_config_file(from_), written = read_json_file(dir_ / "out/config.json");
  EXPECT_EQ(written["model_type"], given["model_type"]);
  EXPECT_EQ(written["architectures"], Json::array({kClasses.at(given["model_type"])}));
  const auto model = [](const Json& json) { return to_json(read_hf_config(json, "config.json").model); };
  EXPECT_EQ(model(written), model(given)) << written.dump(1);
  EXPECT_EQ(read_file(dir_ / "out/generation_config.json"), read_file(from_ + "/generation_config.json"));
  std::map<std::string, std::string> wanted = text_tensors(from_);
  if (written["tie_word_embeddings"] == true) wanted.erase("lm_head.weight");
  std::map<std::string, std::string> found = tensors_of_folder(dir_ / "out");
  for (const auto& [name, bytes] : wanted) EXPECT_TRUE(found[name] == bytes) << name;
  EXPECT_EQ(found.size(), wanted.size());
  const CheckpointReader again(import_hf(real_files(), dir_ / "out", dir_ / "again").checkpoint);
  EXPECT_EQ(again.info().manifest.at("recipe").at("model"), reader.info().manifest.at("recipe").at("model"));
}

/// Returns true for keys that an export may write with other values: rotations are in the layout that every
/// version of transformers reads, a window that no block has is left out, and the outer config of a model
/// with images says whether it is tied.
bool may_differ(const std::string& key, const Json& text) {
  if (key == "sliding_window") return text.value("use_sliding_window", true) == false;
  if (key == "tie_word_embeddings")
    return text["model_type"] == "mistral" || text["model_type"] == "ministral3";
  return key.starts_with("rope") || key == "dtype" || key == "torch_dtype" || key == "architectures";
}

TEST_P(FamilyFolders, KeepTheValuesOfTheirKeys) {
  const CheckpointReader reader(import_hf(real_files(), from_, dir_ / "run").checkpoint);
  export_hf(real_files(), reader, dir_ / "out", {});
  const Json given = read_json_file(from_ + "/config.json");
  const Json text = given.value("text_config", given), written = read_json_file(dir_ / "out/config.json");
  for (const auto& [key, value] : text.items()) {
    if (may_differ(key, text) || !written.contains(key)) continue;
    EXPECT_EQ(written[key], value) << key;
    if (value.is_number_integer()) {
      EXPECT_TRUE(written[key].is_number_integer()) << key << ": transformers takes no float";
    }
  }
  const Json dtype = given.contains("dtype") ? given["dtype"] : given["torch_dtype"];
  EXPECT_EQ(written["torch_dtype"], dtype);
}

INSTANTIATE_TEST_SUITE_P(Golden, FamilyFolders, testing::ValuesIn(family_names()),
                         [](const auto& info) { return info.param; });

Json read_written(const ModelConfig& model, HfConfigText& text) {
  text = write_hf_config(model, 64);
  return to_json(read_hf_config(text.json, "config.json").model);
}

// The classes of Gemma 2 and 3 and of OLMo 3 raise at a window of null, even where no block slides.
TEST(FamilyConfigs, GemmaAndOlmo3HaveAWindowInFilesEvenWhereNoBlockHasOne) {
  const auto expect = [](auto family) {
    family.sliding_window.reset();
    family.layer_types.clear();
    HfConfigText text;
    const Json read = read_written({{family}}, text);
    EXPECT_EQ(text.json["sliding_window"], 4096);
    for (const Json& type : text.json["layer_types"]) EXPECT_EQ(type, "full_attention");
    EXPECT_TRUE(read["sliding_window"].is_null());
    EXPECT_EQ(read["layer_types"], Json::array());
    EXPECT_TRUE(text.warnings.empty());
  };
  expect(Gemma2Config());
  expect(Gemma3Config());
  expect(Olmo3Config());
}

TEST(FamilyConfigs, AWindowThatNoBlockHasIsLeftOut) {
  const Json qwen = {{"model_type", "qwen2"}, {"num_hidden_layers", 4}, {"sliding_window", 64}};
  Json slides = qwen;
  slides.update({{"use_sliding_window", true}, {"max_window_layers", 2}});
  const auto read = [](const Json& json) { return read_hf_config(json, "c").model.as<Qwen2Config>(); };
  EXPECT_EQ(read(slides).sliding_window, 63);
  EXPECT_EQ(read(slides).layer_types.size(), 4u);
  slides["max_window_layers"] = 0;
  EXPECT_EQ(read(slides).sliding_window, 63);
  EXPECT_TRUE(read(slides).layer_types.empty()) << "all are alike";
  slides["max_window_layers"] = 4;
  for (const Json& json : {qwen, slides}) {
    EXPECT_EQ(read(json).sliding_window, std::nullopt);
    EXPECT_TRUE(read(json).layer_types.empty());
  }
}

TEST(FamilyConfigs, ExportsWarnOfWhatTheClassCannotSay) {
  MistralConfig mistral;
  mistral.sliding_window = 7;
  EXPECT_TRUE(write_hf_config({{mistral}}, 64).warnings.empty());
  mistral.layer_types = {LayerType::kSliding, LayerType::kFull};
  ASSERT_EQ(write_hf_config({{mistral}}, 64).warnings.size(), 1u);
  expect_contains(write_hf_config({{mistral}}, 64).warnings[0], "MistralForCausalLM has no layer_types");
  Olmo2Config olmo;
  olmo.sliding_window = 7;
  expect_contains(write_hf_config({{olmo}}, 64).warnings.at(0), "sliding_window");
}

TEST(FamilyConfigs, FamiliesThatAreNotThereYetAreRefusedByName) {
  const std::pair<const char*, const char*> refused[] = {{"qwen3_next", "gated linear attention"},
                                                         {"qwen3_5", "gated linear attention"},
                                                         {"qwen3_5_moe", "gated linear attention"},
                                                         {"qwen2_moe", "mixtures of experts"},
                                                         {"qwen3_moe", "mixtures of experts"},
                                                         {"mixtral", "mixtures of experts"},
                                                         {"olmoe", "mixtures of experts"},
                                                         {"granitemoe", "mixtures of experts"},
                                                         {"granitemoehybrid", "state-space blocks"},
                                                         {"deepseek_v2", "latent attention"},
                                                         {"deepseek_v3", "latent attention"},
                                                         {"gemma4", "Gemma 4"},
                                                         {"gemma4_text", "Gemma 4"},
                                                         {"gemma3n", "Gemma 3n"},
                                                         {"lfm2", "short convolutions"},
                                                         {"lfm2_moe", "short convolutions"}};
  for (const auto& [type, what] : refused) {
    const std::string text = message_of(ExitCode::kUnusable, [&] {
      read_hf_config({{"model_type", type}}, "c");
    });
    expect_contains(text, fmt::format("model_type is \"{}\": Tycho does not have ", type));
    expect_contains(text, std::string(what) + " yet");
  }
}

/// Returns what is said of a family's golden config.json with more keys.
std::string refusal(const std::string& name, const Json& more, const std::vector<std::string>& ignore = {}) {
  Json json = read_json_file(family_folder(name) + "/config.json");
  json.update(more);
  return message_of(ExitCode::kUnusable, [&] { read_hf_config(json, "c", HfStart::kItsWeights, ignore); });
}

TEST(FamilyConfigs, QuantisedWeightsAndUnknownKeysAreRefusedByName) {
  for (const std::string& name : family_names()) {
    expect_contains(refusal(name, {{"quantization_config", {{"quant_method", "fp8"}}}}),
                    "quantization_config: is");
    expect_contains(
        refusal(name, {{"quantization_config", {{"quant_method", "fp8"}}}}, {"quantization_config"}),
        "quantization_config: cannot be ignored");
    if (read_json_file(family_folder(name) + "/config.json").contains("text_config")) continue;
    expect_contains(refusal(name, {{"shiny", 1}}), "shiny: is unknown to Tycho");
    expect_contains(refusal(name, {{"shiny", 1}}, {"shinny"}), "shinny: is to be ignored, but is not a key");
    expect_contains(refusal(name, {{"shiny", 1}}, {"shiny", "hidden_size"}),
                    "hidden_size: cannot be ignored");
  }
}

TEST(FamilyConfigs, AnUnknownKeyThatIsIgnoredChangesNothing) {
  for (const std::string& name : family_names()) {
    const Json plain = read_hf_config_file(family_folder(name));
    Json more = plain;
    more["shiny"] = {1, 2};
    EXPECT_EQ(to_json(read_hf_config(more, "c", HfStart::kItsWeights, {"shiny"}).model),
              to_json(read_hf_config(plain, "c", HfStart::kItsWeights).model))
        << name;
  }
}

}  // namespace
}  // namespace tycho
