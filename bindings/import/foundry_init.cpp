// LLM Foundry's `model.init_config:` -> init of t.model.mpt.
#include <cstdlib>

#include "bindings/import/systems.h"

namespace tycho {
namespace {

using Kind = DocScalar::Kind;

std::string scheme_of(Mapper& mapper) {
  const DocNode* name = mapper.root().at("model.init_config.name");
  return mapper.is_null(name) ? "kaiming_normal_" : mapper.text_of(name);
}

/// Maps a key of init_config that LLM Foundry uses only for some schemes; for others it becomes a comment.
Row for_schemes(const char* key, const char* beginning) {
  return by(key, [=](Mapper& mapper, const DocEntry& entry) {
    if (!scheme_of(mapper).starts_with(beginning)) return mapper.remark(entry, "has no effect here");
    to(key, key).act(mapper, entry);
  });
}

void map_embedding_deviation(Mapper& mapper, const DocEntry& entry) {
  if (scheme_of(mapper) == "default_") return mapper.remark(entry, "has no effect here");
  to("", "emb_init_std").act(mapper, entry);
}

void map_uniform_limit(Mapper& mapper, const DocEntry& entry) {
  const bool other = !mapper.is_null(mapper.root().at("model.init_config.emb_init_std"));
  if (other || scheme_of(mapper) == "default_") return mapper.remark(entry, "has no effect here");
  to("", entry.node.is_list() ? "emb_init_uniform_range" : "emb_init_uniform_lim").act(mapper, entry);
}

/// Maps the divisor, except for default_, which is torch's own, and neox_init_, which has its own divisor.
void map_residual_divisor(Mapper& mapper, const DocEntry& entry) {
  const bool own = scheme_of(mapper) == "default_" || scheme_of(mapper) == "neox_init_";
  if (own) return mapper.remark(entry, "has no effect here");
  const DocScalar given = mapper.value(&entry.node);
  const bool number = given.is(Kind::kInteger) || given.is(Kind::kNumber);
  to("", number ? "residual_divisor" : "init_div_is_residual").act(mapper, entry);
}

/// Maps the gain; for kaiming_* with leaky_relu, its slope, whose default is 0.
void map_init_gain(Mapper& mapper, const DocEntry& entry) {
  const DocNode* shape = mapper.root().at("model.init_config.init_nonlinearity");
  const bool leaky = shape != nullptr && mapper.text_of(shape) == "leaky_relu";
  const std::string scheme = scheme_of(mapper);
  const bool slope = scheme.starts_with("kaiming") && leaky &&
                     std::strtod(mapper.text_of(&entry.node).c_str(), nullptr) != 0;
  if (!slope && !scheme.starts_with("xavier")) return mapper.remark(entry, "has no effect here");
  to("", "init_gain").act(mapper, entry);
}

/// Returns the rows, made at the first call because rows of other files copy them.
const Rows& init_rows() {
  static const Rows rows = {
      to("name", "name"),
      for_schemes("init_std", "baseline"),
      by("init_gain", map_init_gain),
      by("emb_init_std", map_embedding_deviation),
      by("emb_init_uniform_lim", map_uniform_limit),
      for_schemes("fan_mode", "kaiming"),
      for_schemes("init_nonlinearity", "kaiming"),
      by("init_div_is_residual", map_residual_divisor),
      left_out("verbose", "nothing is printed"),
  };
  return rows;
}

}  // namespace

Row foundry_init_row() {
  const auto act = [](Mapper& mapper, const DocEntry& entry) {
    mapper.component(entry, "init", "", init_rows());
  };
  return by("init_config", act, init_rows());
}

}  // namespace tycho
