// peft_config of LLM Foundry's hf_causal_lm as r.lora.
#include <utility>

#include "bindings/import/mapper.h"
#include "bindings/import/systems.h"

namespace tycho {
namespace {

/// Maps target modules. Peft's layer names are the last parts of ours; "all-linear" is the default here.
void map_targets(Mapper& mapper, const DocEntry& entry) {
  if (mapper.text_of(&entry.node) == "all-linear") return mapper.remark(entry, "the default");
  if (entry.node.is_list()) {
    if (const auto list = as_is(mapper, entry)) mapper.emit(entry, "targets", *list);
    return;
  }
  mapper.emit(entry, "targets", "{ " + mapper.expression(entry) + " }");
}

constexpr const char* kOnlyMatrices = "adapters of linear layers alone are trained";

const Rows kPeft = {
    only("peft_type", {"LORA"}, "Tycho has LoRA"),
    left_out("task_type", "it is a language model"),
    to("r", "rank"),
    to("lora_alpha", "alpha"),
    to("lora_dropout", "dropout"),
    to("use_rslora", "rslora"),
    by("target_modules", map_targets),
    only("bias", {"none"}, kOnlyMatrices),
    only("modules_to_save", {"null"}, kOnlyMatrices),
    only("layers_to_transform", {"null"}, "write the layers into lora.targets, as in \"layers.[0-3]..*\""),
    only("init_lora_weights", {"true"}, "A starts uniform and B as zeros"),
    only("use_dora", {"false"}, "DoRA is not supported"),
    left_out("fan_in_fan_out", "taken from the model"),
    left_out("inference_mode", "a run trains"),
    left_out("base_model_name_or_path", "the model's own path"),
};

}  // namespace

Row foundry_peft_row() {
  Row row = elsewhere("peft_config");
  row.rows = kPeft;
  return row;
}

// Peft's defaults are written out.
void map_foundry_peft(Mapper& mapper, const DocEntry& model) {
  const DocNode* peft = model.node.find("peft_config");
  if (peft == nullptr || !peft->is_map()) return;
  const DocEntry entry = {model.path + ".peft_config", *peft};
  std::vector<std::string> defaults;
  for (const auto& [theirs, ours] : {std::pair{"r", "rank"}, std::pair{"lora_alpha", "alpha"}})
    if (peft->find(theirs) == nullptr) defaults.push_back(std::string(ours) + " = 8");
  if (mapper.is_null(peft->find("target_modules")))
    mapper.problem(
        entry,
        "expected target_modules; peft's own choice is [q_proj, v_proj] for Llama, [Wqkv] for MPT and "
        "[c_attn] for GPT-2");
  mapper.component(entry, "lora", "", kPeft, defaults);
}

void refuse_foundry_peft(Mapper& mapper, const DocEntry& model) {
  if (const DocNode* peft = model.node.find("peft_config"); peft != nullptr && peft->is_map())
    mapper.problem({model.path + ".peft_config", *peft},
                   "adapters are trained for a model that exists: set pretrained: true and name its folder");
}

}  // namespace tycho
