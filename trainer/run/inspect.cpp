// Lists parameters, their places and optimizer groups from the layout and the rules.
#include "trainer/run/inspect.h"

#include <algorithm>

namespace tycho {
namespace {

// Groups as users see them; whether a parameter is a block's matrix matters only to the optimizer.
bool alike(ParamRule a, const ParamRule& b) {
  a.hidden_matrix = b.hidden_matrix;
  return a == b;
}

}  // namespace

SessionState session_state(const Trainer& trainer) {
  SessionState state{
      trainer.state(), trainer.recorded_step(), trainer.figures().newest(), trainer.halt().reason, {}};
  const Controls& controls = state.train.controls;
  const int64_t newest = std::max<int64_t>(state.train.step - 1, 0);
  if (controls.lr) state.lr_pin = {trainer.scheduled_lr(newest), controls.lr_by};
  return state;
}

std::vector<ParamInfo> list_params(const ModelLayout& layout, const ParamRules& rules) {
  std::vector<ParamInfo> params;
  for (size_t u = 0; u < layout.units.size(); ++u) {
    // Unit 0 is the embedding, then come the blocks and the head; adapters are a block's.
    const UnitSpec& unit = layout.units[u];
    const int64_t block = (unit.adapts < 0 ? static_cast<int64_t>(u) : unit.adapts) - 1;
    for (size_t i = 0; i < unit.params.size(); ++i)
      params.push_back({unit.params[i].name, unit.params[i].shape, block < layout.num_blocks ? block : -1,
                        rules[u][i].frozen});
  }
  return params;
}

std::vector<std::pair<size_t, size_t>> list_places(const ModelLayout& layout) {
  std::vector<std::pair<size_t, size_t>> places;
  for (size_t u = 0; u < layout.units.size(); ++u)
    for (size_t i = 0; i < layout.units[u].params.size(); ++i) places.emplace_back(u, i);
  return places;
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
    const std::vector<int32_t> tokens = batch.tokens.widened(), targets = batch.targets.widened();
    for (int64_t b = 0; b < batch.num_sequences && static_cast<int64_t>(sequences.size()) < n; ++b) {
      const auto row = [&](const std::vector<int32_t>& all) {
        const auto begin = all.begin() + b * batch.seq_len;
        return std::vector<int32_t>(begin, begin + batch.seq_len);
      };
      sequences.push_back({row(tokens), row(targets)});
    }
  }
  return sequences;
}

}  // namespace tycho
