// LLM Foundry's two implementations of rotary positions and their configuration.
#include "trainer/families/foundry_rope.h"

#include "trainer/families/hf_family.h"

namespace tycho {
namespace {

using MptKey = HfKey<MptConfig>;

/// Reads rope_impl. dail rotates d_model / n_heads numbers of a head and leaves the rest; Tycho and Hugging
/// Face's rotate all.
void read_rope_impl(const JsonPath& place, MptConfig& model) {
  const bool dail = read_name(place, {"dail", "hf"}) == 0;
  if (dail && model.positions == PositionKind::kRope && model.heads * model.head_dim() != model.width)
    place.problems.push_back({place.path, fmt::format("is dail, which rotates {} of the {} elements of a "
                                                      "head; Tycho rotates all of them, like rope_impl hf",
                                                      model.width / model.heads, model.head_dim())});
}

/// Writes rope_impl. Rotations are the same in both implementations; only Hugging Face's runs without
/// flash-attn, and only dail has xPos.
std::optional<Json> rope_impl(const MptConfig& model) { return model.xpos_scale_base ? "dail" : "hf"; }

void read_rope_dail(const JsonPath& place, MptConfig& model) {
  if (place.json.is_null() || !check_object(place, "a table such as {\"type\": \"original\"}")) return;
  check_keys(place, {"type", "pos_idx_in_fp32", "xpos_scale_base"});
  const auto type = place.json.find("type"), base = place.json.find("xpos_scale_base");
  if (type == place.json.end() || read_name(place.child(*type, "type"), {"original", "xpos"}) != 1) return;
  double scale_base = 512;
  if (base != place.json.end()) read_value(place.child(*base, "xpos_scale_base"), positive, scale_base);
  model.xpos_scale_base = scale_base;
}

std::optional<Json> rope_dail_json(const MptConfig& model) {
  if (!model.xpos_scale_base) return std::nullopt;
  return Json{{"type", "xpos"}, {"pos_idx_in_fp32", true}, {"xpos_scale_base", *model.xpos_scale_base}};
}

HfTable<MptConfig> rope_hf_keys() {
  HfTable<MptConfig> table = rope_keys<MptConfig>();
  const auto read = [](const JsonPath& place, MptConfig& model) {
    const int index = read_name(place, {"no_scaling", "linear", "dynamic", "llama3"});
    if (index >= 0) model.rope_scaling.type = static_cast<RopeScaling>(index);
  };
  for (MptKey& key : table)
    if (key.name == "type" || key.name == "rope_type") key.read = read;
  return table;
}

std::optional<Json> rope_hf_json(const MptConfig& model) {
  const RopeScalingConfig& rope = model.rope_scaling;
  if (rope.type == RopeScaling::kNone) return Json{{"type", "no_scaling"}, {"factor", 1.0}};
  return rope_scaling_json("type", rope);
}

}  // namespace

HfTable<MptConfig> foundry_rope_keys() {
  return {mapped("rope_theta", &MptConfig::rope_theta, positive),
          {"rope_impl", read_rope_impl, rope_impl},
          {"rope_dail_config", read_rope_dail, rope_dail_json},
          {"rope_hf_config", group<MptConfig>("", rope_hf_keys()).read, rope_hf_json}};
}

Json with_chosen_rope(Json attn_config) {
  if (!attn_config.is_object()) return attn_config;
  const auto impl = attn_config.find("rope_impl");
  const bool hf = impl != attn_config.end() && *impl == "hf";
  attn_config.erase(hf ? "rope_dail_config" : "rope_hf_config");
  if (impl == attn_config.end()) attn_config["rope_impl"] = "dail";
  return attn_config;
}

}  // namespace tycho
