// Reads the checkpoint's recipe as JSON: a card has what is there, and never fails an export.
#include "trainer/huggingface/model_card.h"

#include <algorithm>
#include <vector>

#include "trainer/base/bytes.h"
#include "trainer/layout/model_layout.h"
#include "trainer/recipe/config_io.h"
#include "trainer/recipe/hub_name.h"

namespace tycho {
namespace {

constexpr const char* kMark = "<!-- tycho convert: checkpoint ";

/// Collects the names of the hub in a part of a recipe.
void collect_hub_names(const Json& json, std::vector<HubName>& names) {
  if (json.is_string()) {
    const auto text = json.get<std::string>();
    if (is_hub_name(text) && hub_name_problem(text).empty()) names.push_back(parse_hub_name(text));
  } else if (json.is_structured()) {
    for (const Json& one : json) collect_hub_names(one, names);
  }
}

std::vector<HubName> hub_names(const Json& recipe, std::initializer_list<const char*> keys) {
  std::vector<HubName> names;
  for (const char* key : keys) collect_hub_names(recipe.value(key, Json()), names);
  return names;
}

/// Returns a value as a recipe writes it; "" for none.
std::string text_of(const Json& value) {
  if (value.is_null()) return "";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string yaml_list(const char* key, std::vector<std::string> items) {
  std::sort(items.begin(), items.end());
  items.erase(std::unique(items.begin(), items.end()), items.end());
  if (items.empty()) return "";
  std::string text = std::string(key) + ":\n";
  for (const std::string& item : items) text += "- " + item + "\n";
  return text;
}

std::vector<std::string> ids_of(const std::vector<HubName>& names, HubName::Kind kind) {
  std::vector<std::string> ids;
  for (const HubName& name : names)
    if (name.kind == kind) ids.push_back(name.id);
  return ids;
}

std::string head(const Json& recipe, const CardRequest& request) {
  std::string text = fmt::format("---\nlibrary_name: {}\npipeline_tag: text-generation\ntags:\n- tycho\n",
                                 request.is_adapter ? "peft" : "transformers");
  text += yaml_list("base_model", ids_of(hub_names(recipe, {"model"}), HubName::Kind::kModel));
  text += yaml_list("datasets",
                    ids_of(hub_names(recipe, {"train_data", "data_stages"}), HubName::Kind::kDataset));
  return text + "---\n";
}

std::string settings_table(const CheckpointInfo& checkpoint, const Json& recipe, const CardRequest& request) {
  std::string text = "| | |\n|---|---|\n";
  const auto row = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += fmt::format("| {} | {} |\n", name, value);
  };
  const auto kind_of = [&](const char* key) {
    return text_of(recipe.value(key, Json::object()).value("kind", Json()));
  };
  row("step", std::to_string(checkpoint.step));
  const Json state = checkpoint.manifest.value("train_state", Json::object());
  row("tokens", text_of(state.value("tokens", Json())));
  for (const auto& [label, key] : {std::pair{"sequence length", "seq_len"},
                                   {"global batch", "global_batch"},
                                   {"duration", "max_duration"},
                                   {"precision", "precision"},
                                   {"seed", "seed"}})
    row(label, text_of(recipe.value(key, Json())));
  row("optimizer", kind_of("optimizer"));
  row("learning rate", text_of(recipe.value("optimizer", Json::object()).value("lr", Json())));
  row("schedule", kind_of("scheduler"));
  for (const auto& [label, keys] :
       {std::pair{"base model", "model"}, {"tokenizer", "tokenizer"}, {"data", "train_data"}})
    for (const HubName& name : hub_names(recipe, {keys})) row(label, "`" + name.text() + "`");
  for (const HubName& name : hub_names(recipe, {"data_stages"})) row("later data", "`" + name.text() + "`");
  row("weights", request.weights);
  row("recipe", text_of(checkpoint.manifest.value("recipe_hash", Json())));
  const Json& git = request.provenance.is_object() ? request.provenance.value("git.head", Json()) : Json();
  if (git.is_array() && !git.empty() && git.back().is_object())
    row("git.head", text_of(git.back().value("value", Json())));
  return text;
}

}  // namespace

std::string card_mark(const CheckpointInfo& checkpoint, const ExportOptions& options,
                      const CardRequest& request) {
  return fmt::format(
      "{}{}, {}, at most {} bytes a file{}{}. Without this line, --push leaves this text as it is. -->",
      kMark, checkpoint.uuid, options.dtype, options.shard_bytes,
      options.merge        ? ", merged"
      : request.is_adapter ? ", adapters"
                           : "",
      request.weights.empty() ? "" : ", " + request.weights);
}

std::string model_card(const CheckpointInfo& checkpoint, const ExportOptions& options,
                       const CardRequest& request) {
  const Json& recipe = checkpoint.manifest.at("recipe");
  ModelConfig model = read_trained_config(recipe, TrainedUse::kModel, checkpoint.path).model;
  model.lora = {};
  std::string text = head(recipe, request);
  text += card_mark(checkpoint, options, request) + "\n\n# " + request.name + "\n\n";
  text += fmt::format("{} {} with {} parameters, trained with Tycho {}.\n\n",
                      request.is_adapter ? "Adapters (LoRA) of a" : "A", model.kind(),
                      human_count(static_cast<double>(model_layout(model).num_params())), request.version);
  return text + settings_table(checkpoint, recipe, request);
}

bool is_own_card(const std::string& text) { return text.find(kMark) != std::string::npos; }

}  // namespace tycho
