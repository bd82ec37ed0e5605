// Writes adapters under peft's names.
#include "trainer/huggingface/peft_export.h"

#include <algorithm>
#include <set>

#include "trainer/base/error.h"
#include "trainer/families/config.h"
#include "trainer/families/decoder_spec.h"
#include "trainer/huggingface/export_folder.h"
#include "trainer/huggingface/hf_import.h"
#include "trainer/huggingface/weight_source.h"
#include "trainer/layout/adapters.h"
#include "trainer/layout/decoder_layout.h"
#include "trainer/recipe/config_io.h"

namespace tycho {
namespace {

constexpr std::string_view kA = ".lora_A.weight";

TrainConfig recipe_of(const CheckpointReader& checkpoint) {
  return read_trained_config(checkpoint.info().manifest.at("recipe"), TrainedUse::kModel,
                             checkpoint.info().path);
}

/// Returns the layers with adapters in peft's form: the last word of their names when all layers with that
/// word have some, else whole names.
Json target_modules(const ModelConfig& model, const std::vector<UnitSpec>& units) {
  std::set<std::string> adapted, targets;
  for (const UnitSpec& unit : units)
    for (const ParamSpec& param : unit.params)
      if (unit.adapts >= 0 && param.name.ends_with(kA))
        adapted.insert(param.name.substr(0, param.name.size() - kA.size()));
  const auto word = [](const std::string& name) { return name.substr(name.rfind('.') + 1); };
  std::set<std::string> incomplete;
  for (const std::string& name : linear_layer_names(decoder_spec(model)))
    if (!adapted.contains(name)) incomplete.insert(word(name));
  for (const std::string& name : adapted) targets.insert(incomplete.contains(word(name)) ? name : word(name));
  return targets;
}

Json adapter_config(const TrainConfig& recipe, const std::string& base, const std::vector<UnitSpec>& units) {
  const LoraConfig& lora = recipe.model.lora;
  return {{"peft_type", "LORA"},
          {"task_type", "CAUSAL_LM"},
          {"base_model_name_or_path", base},
          {"r", lora.rank},
          {"lora_alpha", lora.alpha.value_or(static_cast<double>(lora.rank))},
          {"lora_dropout", lora.dropout},
          {"use_rslora", lora.rslora},
          {"target_modules", target_modules(recipe.model, units)},
          {"bias", "none"},
          {"fan_in_fan_out", decoder_spec(recipe.model).in_out},
          {"init_lora_weights", true},
          {"inference_mode", true},
          {"modules_to_save", nullptr}};
}

/// Refuses an MPT of LLM Foundry that was saved with Wq, Wk and Wv, for which Wqkv's adapter does not fit.
void require_fused(const CheckpointReader& checkpoint) {
  if (!checkpoint.has_file(kKeptHfConfig)) return;
  const Json config = parse_json(checkpoint.read_text_file(kKeptHfConfig), checkpoint.info().path);
  const Json attention = config.value("attn_config", Json::object());
  if (!attention.is_object() || attention.value("fused_qkv", true)) return;
  fail(ExitCode::kUnusable,
       "[convert] {} has adapters of Wqkv, and the model that they are for keeps Wq, Wk and Wv apart, which "
       "peft "
       "cannot load: export the model with --merge",
       checkpoint.info().path);
}

}  // namespace

bool holds_adapters(const CheckpointReader& checkpoint) { return recipe_of(checkpoint).model.lora.is_used(); }

AdapterReport export_adapters(FileOps& files, const CheckpointReader& checkpoint, const std::string& to,
                              const std::string& card) {
  require_free_folder(to);
  const TrainConfig recipe = recipe_of(checkpoint);
  std::vector<UnitSpec> units = model_layout(recipe.model).units;
  std::erase_if(units, [](const UnitSpec& unit) { return unit.adapts < 0; });
  check_weights(checkpoint, units);
  require_fused(checkpoint);
  AdapterReport report{
      .base = std::visit([](const auto& family) { return family.weights; }, recipe.model.value), .files = {}};
  std::vector<std::vector<float>> values;  // held in memory, since adapters are small
  std::vector<TensorBytes> tensors;
  for (const UnitSpec& unit : units)
    for (const ParamSpec& param : unit.params) {
      values.push_back(weights_of(checkpoint)(param));
      tensors.push_back({"base_model.model." + param.name, "F32", param.shape, values.back().data(),
                         numel(param.shape) * 4});
      report.num_params += numel(param.shape);
      report.num_bytes += tensors.back().num_bytes;
    }
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorBytes& a, const TensorBytes& b) { return a.name < b.name; });
  ExportFolder folder(files, to);
  report.files = {"adapter_model.safetensors", "adapter_config.json"};
  folder.shard(report.files[0], tensors);
  if (!card.empty()) {
    folder.text("README.md", card);
    report.files.push_back("README.md");
  }
  folder.text(report.files[1], adapter_config(recipe, report.base, units).dump(2) + "\n");
  folder.finish();
  return report;
}

}  // namespace tycho
