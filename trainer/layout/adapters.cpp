// Names and shapes of adapters follow peft's.
#include "trainer/layout/adapters.h"

#include <algorithm>
#include <cmath>

#include "trainer/base/regex.h"

namespace tycho {

LayerOutputs layer_outputs(const UnitSpec& block, const LinearLayer& layer) {
  for (size_t k = 0; k < block.stacks.size(); ++k) {
    const UnitSpec::Stack& stack = block.stacks[k];
    if (layer.param < stack.first || layer.param >= stack.first + stack.count) continue;
    LayerOutputs outputs = {static_cast<int>(block.params.size() + k), 0};
    for (int i = stack.first; i < layer.param; ++i)
      outputs.first += block.params[static_cast<size_t>(i)].shape.front();
    return outputs;
  }
  return {layer.param, 0};
}

std::string target_pattern(const std::string& target) { return "(?:^|\\.)(?:" + target + ")$"; }

std::vector<LinearLayer> adapted_layers(const std::vector<LinearLayer>& layers, const LoraConfig& lora) {
  if (!lora.is_used()) return {};
  if (lora.targets.empty()) return layers;
  std::vector<Regex> patterns;
  for (const std::string& target : lora.targets) patterns.emplace_back(target_pattern(target));
  std::vector<LinearLayer> adapted;
  for (const LinearLayer& layer : layers)
    if (std::any_of(patterns.begin(), patterns.end(),
                    [&](const Regex& pattern) { return pattern.is_found_in(layer.name); }))
      adapted.push_back(layer);
  return adapted;
}

UnitSpec adapter_unit(const std::string& block, int unit, const std::vector<LinearLayer>& adapted,
                      int64_t rank) {
  UnitSpec result{.name = block + ".lora", .params = {}, .stacks = {}, .base = false, .adapts = unit};
  // The product of a rank's parts is its share of the whole, so the gradients of parameters that all ranks
  // have are shares.
  const auto cut = [](const std::vector<TpCut::Section>& sections, int dim) {
    return sections.empty() ? TpCut{.sections = {}, .dim = 0, .gradient = TpCut::Gradient::kOfHeads}
                            : TpCut{.sections = sections, .dim = dim};
  };
  for (const LinearLayer& layer : adapted) {
    const double bound = 1 / std::sqrt(static_cast<double>(layer.columns));
    result.params.push_back({.name = layer.name + ".lora_A.weight",
                             .shape = {rank, layer.columns},
                             .init = {Init::Kind::kUniform, bound},
                             .tp = cut(layer.in, 1)});
    result.params.push_back({.name = layer.name + ".lora_B.weight",
                             .shape = {layer.rows, rank},
                             .init = {Init::Kind::kZeros, 0},
                             .tp = cut(layer.out, 0)});
  }
  return result;
}

size_t num_own_units(const std::vector<UnitSpec>& units) {
  const auto adapters =
      std::find_if(units.begin(), units.end(), [](const UnitSpec& unit) { return unit.adapts >= 0; });
  return static_cast<size_t>(adapters - units.begin());
}

bool is_of_block(const std::vector<UnitSpec>& units, size_t unit) {
  const size_t own = num_own_units(units);
  return unit >= own || (unit > 0 && unit + 1 < own);
}

size_t lowest_trained_unit(const std::vector<UnitSpec>& units) {
  size_t lowest = num_own_units(units) - 1;
  for (size_t u = 0; u < units.size(); ++u)
    if (!units[u].frozen())
      lowest = std::min(lowest, units[u].adapts < 0 ? u : static_cast<size_t>(units[u].adapts));
  return lowest;
}

}  // namespace tycho
