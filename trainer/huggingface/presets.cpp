// Presets are kept as config.json, which transformers and the families' own tables read.
#include "trainer/huggingface/presets.h"

#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/families/hf_family.h"
#include "trainer/huggingface/hf_config.h"

namespace tycho {

std::vector<std::string> preset_names(const std::string& kind) {
  std::vector<std::string> names;
  for_each_family(ModelConfig{}, [&]<class Family>(const HfFamily<Family>& family) {
    if (kind == Family::kKind)
      for (const auto& [name, text] : family.presets) names.emplace_back(name);
  });
  return names;
}

ModelConfig preset_model(const std::string& kind, const std::string& wanted) {
  Json json;
  for_each_family(ModelConfig{}, [&]<class Family>(const HfFamily<Family>& family) {
    if (kind != Family::kKind) return;
    for (const auto& [name, text] : family.presets) {
      if (wanted != name) continue;
      json = parse_json(text, name);
      json["model_type"] = family.model_type;
    }
  });
  return read_hf_config(json, kind + " " + wanted).model;
}

}  // namespace tycho
