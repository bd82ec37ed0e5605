// Joins neighbours with the same rule, so that one kernel call updates them.
#include "trainer/optim/segments.h"

#include <algorithm>
#include <set>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/random/philox.h"
#include "trainer/units/arena.h"

namespace tycho {
namespace {

// Adds the buffer `name` of a unit, unless none of its parameters has that state.
void add_buffer(const OptimizerConfig& config, const FlatUnit& unit, const std::vector<ParamRule>& rules,
                const std::string& name, std::vector<StateBuffer>& state) {
  StateBuffer buffer{.name = name, .extents = {}, .flat = {}};
  int64_t numel = 0;
  for (size_t i = 0; i < rules.size(); ++i) {
    const std::vector<std::string> names = state_names(config, rules[i]);
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    const Extent& e = unit.extents()[i];
    buffer.extents.push_back({numel, numel + e.end - e.begin, e.spec});
    numel += e.end - e.begin;
  }
  if (numel == 0) return;
  buffer.flat = arena_view(make_arena(numel * 4, unit.flat_params().device()), 0, {numel}, at::kFloat);
  state.push_back(std::move(buffer));
}

std::vector<StateBuffer> make_state(const OptimizerConfig& config, const std::vector<FlatUnit>& units,
                                    const ParamRules& rules) {
  std::vector<StateBuffer> state;
  std::set<std::string> names;  // sorted: the order of checkpoints
  for (const std::vector<ParamRule>& unit : rules)
    for (const ParamRule& rule : unit)
      for (std::string& name : state_names(config, rule)) names.insert(std::move(name));
  for (const std::string& name : names)
    for (size_t u = 0; u < units.size(); ++u) add_buffer(config, units[u], rules[u], name, state);
  return state;
}

bool updates_whole_matrices(const OptimizerConfig& config) {
  return std::visit(
      [](const auto& kind) {
        return requires { kind.kUpdatesWholeMatrices; };
      },
      config.value);
}

// `length` elements of the state `name`, from a parameter on.
Tensor state_view(const std::vector<StateBuffer>& state, const std::string& name, const ParamSpec* param,
                  int64_t length) {
  for (const StateBuffer& buffer : state)
    for (const Extent& e : buffer.extents)
      if (buffer.name == name && e.spec == param) return buffer.flat.narrow(0, e.begin, length);
  fail(ExitCode::kFailure, "[optim] {} has no {}", param->name, name);
}

}  // namespace

Segments make_segments(const OptimizerConfig& config, std::vector<FlatUnit>& units, const ParamRules& rules,
                       uint64_t seed) {
  Segments segments{.state = make_state(config, units, rules), .list = {}};
  for (size_t u = 0; u < units.size(); ++u) {
    const std::vector<Extent>& extents = units[u].extents();
    const bool stochastic = units[u].rounds_stochastically();
    const bool separate_master =
        units[u].flat_master().defined() && !units[u].flat_master().is_same(units[u].flat_params());
    for (size_t first = 0, end; first < extents.size(); first = end) {
      const ParamRule& rule = rules[u][first];
      const bool alone = stochastic || (updates_whole_matrices(config) && rule.hidden_matrix);
      end = first + 1;
      while (!alone && end < extents.size() && rules[u][end] == rule) ++end;
      if (rule.frozen) continue;
      const int64_t begin = extents[first].begin, length = extents[end - 1].end - begin;
      Segment segment{.rule = rule, .shape = extents[first].spec->shape};
      segment.weights.params = units[u].flat_params().narrow(0, begin, length);
      if (separate_master) segment.weights.master = units[u].flat_master().narrow(0, begin, length);
      segment.weights.stochastic = stochastic;
      segment.weights.key = stream_key(seed, "rounding of " + extents[first].spec->name);
      segment.grads = units[u].flat_grads().narrow(0, begin, length);
      for (const std::string& name : state_names(config, rule))
        segment.state.push_back(state_view(segments.state, name, extents[first].spec, length));
      segments.list.push_back(std::move(segment));
    }
  }
  return segments;
}

std::vector<Tensor> trained_grads(const std::vector<FlatUnit>& units, const ParamRules& rules) {
  std::vector<Tensor> grads;
  for (size_t u = 0; u < units.size(); ++u) {
    const std::vector<Extent>& extents = units[u].extents();
    for (size_t first = 0, end; first < extents.size(); first = end) {
      end = first + 1;
      while (end < extents.size() && rules[u][end].frozen == rules[u][first].frozen) ++end;
      if (rules[u][first].frozen) continue;
      grads.push_back(
          units[u].flat_grads().narrow(0, extents[first].begin, extents[end - 1].end - extents[first].begin));
    }
  }
  return grads;
}

}  // namespace tycho
