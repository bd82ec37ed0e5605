// What a prompt reads from an open run.
#include "trainer/run/inspect.h"

namespace tycho {
namespace {

// Groups as users see them; whether a parameter is a block's matrix matters only to the optimizer.
bool alike(ParamRule a, const ParamRule& b) {
  a.hidden_matrix = b.hidden_matrix;
  return a == b;
}

}  // namespace

std::vector<ParamInfo> list_params(const UnitStore& units, const ParamRules& rules, int64_t num_blocks) {
  std::vector<ParamInfo> params;
  for (int u = 0; u < units.num_units(); ++u) {
    // Unit 0 is the embedding, then come the blocks and the head; adapters are a block's.
    const int adapts = units.layout(u).spec().adapts;
    const int64_t block = (adapts < 0 ? u : adapts) - 1;
    const std::vector<ParamRule>& of_unit = rules[static_cast<size_t>(u)];
    for (const Extent& e : units.layout(u).extents())
      params.push_back(
          {e.spec->name, e.spec->whole_shape(), block < num_blocks ? block : -1, of_unit[e.param].frozen});
  }
  return params;
}

std::vector<OptimizerGroup> list_groups(const std::vector<ParamInfo>& params,
                                        const std::vector<std::pair<size_t, size_t>>& places,
                                        const ParamRules& rules) {
  std::vector<OptimizerGroup> groups;
  std::vector<ParamRule> seen;
  for (size_t p = 0; p < params.size(); ++p) {
    const auto [unit, i] = places[p];
    const ParamRule& rule = rules[unit][i];
    size_t group = 0;
    while (group < seen.size() && !alike(seen[group], rule)) ++group;
    if (group == seen.size()) {
      seen.push_back(rule);
      groups.push_back({rule.lr_scale, rule.weight_decay, rule.betas, rule.frozen, {}});
    }
    groups[group].params.push_back(params[p].name);
  }
  return groups;
}

GenerateOptions generate_options(const TextOptions& text) {
  GenerateOptions options;
  options.sampling = {text.temperature, text.top_k, text.top_p, text.repetition_penalty};
  options.max_tokens = text.max_tokens;
  options.stop = text.stop;
  options.ignore_eos = text.ignore_eos;
  options.seed = text.seed;
  return options;
}

std::vector<PeekedSequence> peek_sequences(DataLoader& loader, int64_t n) {
  std::vector<PeekedSequence> sequences;
  while (static_cast<int64_t>(sequences.size()) < n) {
    const Batch batch = loader.next();
    for (int64_t b = 0; b < batch.num_sequences && static_cast<int64_t>(sequences.size()) < n; ++b) {
      const auto row = [&](const std::vector<int32_t>& all) {
        const auto begin = all.begin() + b * batch.seq_len;
        return std::vector<int32_t>(begin, begin + batch.seq_len);
      };
      sequences.push_back({row(batch.tokens), row(batch.targets)});
    }
  }
  return sequences;
}

}  // namespace tycho
