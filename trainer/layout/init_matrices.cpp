// Finds roles by the names that a family has for its parameters.
#include "trainer/layout/init_matrices.h"

#include <string_view>
#include <utility>

#include "trainer/families/attention_config.h"
#include "trainer/families/config.h"
#include "trainer/families/decoder_spec.h"
#include "trainer/layout/adapters.h"
#include "trainer/layout/model_layout.h"
#include "trainer/layout/param_spec.h"

namespace tycho {
namespace {

/// Returns the role of a parameter of a block by its name there, or of another one by its whole name.
std::string role_of(const DecoderNames& n, bool of_block, std::string_view name) {
  const std::vector<std::pair<const std::string&, const char*>> of_blocks = {
      {n.q, n.k.empty() ? "qkv" : "q"},
      {n.q_alone, "q"},
      {n.k, "k"},
      {n.v, "v"},
      {n.out, "out"},
      {n.gate, n.up.empty() ? "gate_up" : "gate"},
      {n.up, "up"},
      {n.down, "down"}};
  const std::vector<std::pair<const std::string&, const char*>> others = {
      {n.embedding, "embedding"}, {n.positions, "positions"}, {n.head, "head"}};
  for (const auto& [known, role] : of_block ? of_blocks : others)
    if (!known.empty() && name == known) return role;
  return "other";
}

}  // namespace

std::vector<InitMatrix> init_matrices(const ModelConfig& model) {
  const DecoderSpec spec = decoder_spec(model, AttentionConfig{});
  const std::vector<UnitSpec> units = model_layout(model).units;
  std::vector<InitMatrix> found;
  for (size_t u = 0; u < num_own_units(units); ++u)
    for (const ParamSpec& param : units[u].params) {
      if (param.shape.size() != 2) continue;
      const bool of_block = is_of_block(units, u);
      std::string_view name = param.name;
      if (of_block) name.remove_prefix(units[u].name.size() + 1);
      name.remove_suffix(std::string_view(".weight").size());
      InitMatrix& matrix = found.emplace_back();
      matrix.name = param.name, matrix.role = role_of(spec.names, of_block, name);
      matrix.layer = static_cast<int64_t>(u), matrix.layers = spec.layers;
      matrix.rows = param.shape[0], matrix.columns = param.shape[1];
      const bool in_out = of_block && spec.in_out;
      matrix.fan_in = in_out ? matrix.rows : matrix.columns;
      matrix.fan_out = in_out ? matrix.columns : matrix.rows;
      matrix.residual = matrix.role == "out" || matrix.role == "down";
    }
  return found;
}

}  // namespace tycho
