// Joins neighbours with the same rule, so that one kernel call updates them.
#include "trainer/optim/segments.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/random/philox.h"
#include "trainer/layout/tp_parts.h"
#include "trainer/layout/unit_shards.h"
#include "trainer/sharding/arena.h"
#include "trainer/sharding/defined_init.h"

namespace tycho {
namespace {

// True on one of the ranks with parts of a parameter.
bool has_first_element(const Extent& extent) {
  bool has = false;
  for (const Extent& part : counted(extent))
    for_whole_runs(*part.spec, part.first, part.size(), [&](int64_t, int64_t j, int64_t) { has |= j == 0; });
  return has;
}

// State with a shape of its own, as a parameter that one rank counts.
ParamSpec own_shape(const StateSpec& state, const Extent& extent) {
  ParamSpec spec{.name = extent.spec->name, .shape = state.shape, .init = {}};
  if (has_first_element(extent)) return spec;
  spec.part = ParamPart{.whole = state.shape, .dim = 0, .runs = {{.size = state.shape[0], .counts = false}}};
  return spec;
}

// Fills state of an extent with values that the recipe defines. Numbers depend on the seed, the parameter,
// the state and the element, so that ranks with parts of one parameter have parts of the same values.
void draw_state(const Json& expression, const std::string& name, const Extent& extent, uint64_t seed,
                Tensor flat) {
  const DrawnValue value(expression);
  const Tensor host = at::empty(flat.sizes(), at::TensorOptions().dtype(at::kFloat));
  const std::string stream = fmt::format("{} {}", extent.spec->name, name);
  for_whole_runs(*extent.spec, extent.first, extent.size(), [&](int64_t i, int64_t j, int64_t n) {
    value.draw(stream, seed, j, n, host.data_ptr<float>() + i);
  });
  flat.copy_(host);
}

// Expression that state begins with where the recipe defines one, or null.
const Json* defined_state(const OptimizerConfig& config, const ParamRule& rule, const Extent& extent,
                          const std::string& name) {
  const auto* const defined = std::get_if<DefinedOptimizerConfig>(&config.value);
  if (defined == nullptr || rule.frozen) return nullptr;
  for (const Json& state : defined->update_of(extent.spec->whole_shape(), rule.hidden_matrix).at("states"))
    if (state.at("name") == name && state.contains("init") && state["init"].is_object())
      return &state["init"];
  return nullptr;
}

// Adds the buffer `name` of a range, unless none of its parameters has that state.
void add_buffer(const OptimizerConfig& config, const OwnedRange& range, const std::vector<ParamRule>& rules,
                const std::string& name, uint64_t seed, std::vector<StateBuffer>& state) {
  StateBuffer buffer{name, {}, {}, std::make_shared<std::deque<ParamSpec>>()};
  at::Device device = range.params.device();
  int64_t end = 0;
  std::vector<double> first;         // of each extent
  std::vector<const Json*> defined;  // of each extent
  for (const Extent& e : range.extents)
    for (const StateSpec& one : state_specs(config, rules[e.param], *e.spec)) {
      if (one.name != name) continue;
      const int64_t begin = end;
      first.push_back(one.first);
      defined.push_back(defined_state(config, rules[e.param], e, name));
      if (one.scalar) device = at::kCPU;
      end += one.is_like_parameter() ? e.size() : numel(one.shape);
      if (one.is_like_parameter())
        buffer.extents.push_back({begin, end, e.spec, e.param, e.first});
      else
        buffer.extents.push_back(
            {begin, end, &buffer.own_shapes->emplace_back(own_shape(one, e)), e.param, 0});
    }
  if (end == 0) return;
  buffer.flat = arena_view(make_arena(end * 4, device), 0, {end}, at::kFloat);
  for (size_t i = 0; i < first.size(); ++i) {
    const Extent& extent = buffer.extents[i];
    const Tensor flat = buffer.flat.narrow(0, extent.begin, extent.size());
    if (first[i] != 0) flat.fill_(first[i]);
    if (defined[i] != nullptr) draw_state(*defined[i], name, extent, seed, flat);
  }
  state.push_back(std::move(buffer));
}

std::vector<StateBuffer> make_state(const OptimizerConfig& config, const std::vector<OwnedRange>& ranges,
                                    const ParamRules& rules, uint64_t seed) {
  std::vector<StateBuffer> state;
  std::set<std::string> names;  // sorted like checkpoints
  for (size_t u = 0; u < ranges.size(); ++u)
    for (const Extent& e : ranges[u].extents)
      for (StateSpec& one : state_specs(config, rules[u][e.param], *e.spec))
        names.insert(std::move(one.name));
  for (const std::string& name : names)
    for (size_t u = 0; u < ranges.size(); ++u) add_buffer(config, ranges[u], rules[u], name, seed, state);
  return state;
}

bool updates_whole(const OptimizerConfig& config, const ParamRule& rule, const ParamSpec& param) {
  return std::visit(
      [&](const auto& kind) {
        if constexpr (requires { kind.updates_whole(param.whole_shape(), rule.hidden_matrix); })
          return kind.updates_whole(param.whole_shape(), rule.hidden_matrix);
        return false;
      },
      config.value);
}

// True if neighbours share no update with a parameter.
bool updates_alone(const OptimizerConfig& config, const ParamRule& rule, const ParamSpec& param) {
  const auto* const defined = std::get_if<DefinedOptimizerConfig>(&config.value);
  return updates_whole(config, rule, param) ||
         (defined != nullptr && defined->updates_alone(param.whole_shape(), rule.hidden_matrix));
}

// A state of a segment that begins with a parameter: `length` numbers, or a matrix of its own shape.
Tensor state_view(const std::vector<StateBuffer>& state, const StateSpec& one, const ParamSpec& param,
                  int64_t length) {
  for (const StateBuffer& buffer : state)
    for (const Extent& e : buffer.extents) {
      if (buffer.name != one.name || e.spec->name != param.name) continue;
      if (one.is_like_parameter() || one.scalar) return buffer.flat.narrow(0, e.begin, length);
      return buffer.flat.narrow(0, e.begin, e.size()).view(one.shape);
    }
  fail(ExitCode::kFailure, "[optim] {} has no {}", param.name, one.name);
}

// The noise of rounding is that of the elements of the whole parameter.
ParamRuns whole_place(const ParamSpec& param, int64_t first) {
  ParamRuns place{.first = first};
  if (!param.part) return place;
  const auto dim = static_cast<size_t>(param.part->dim);
  int64_t step = 1;  // elements of an index along the dim
  for (size_t d = dim + 1; d < param.shape.size(); ++d) step *= param.shape[d];
  place.row = param.shape[dim] * step, place.whole_row = param.part->whole[dim] * step;
  const std::vector<ParamPart::Run>& runs = param.part->runs;
  TYCHO_CHECK(runs.size() <= ParamRuns::kMostRuns, "[optim] {} has {} parts on a rank, expected at most {}",
              param.name, runs.size(), ParamRuns::kMostRuns);
  for (size_t k = 0; k < runs.size(); ++k)
    place.here[k] = runs[k].here * step, place.there[k] = runs[k].there * step;
  return place;
}

// Extents [first, end) of a range as one segment.
Segment make_segment(const OwnedRange& range, size_t first, size_t end, const ParamRule& rule,
                     uint64_t seed) {
  const Extent& opening = range.extents[first];
  const int64_t begin = opening.begin, length = range.extents[end - 1].end - begin;
  Segment segment{.rule = rule, .extent = {0, opening.size(), opening.spec, opening.param, opening.first}};
  segment.weights.params = range.params.narrow(0, begin, length);
  if (range.has_own_master()) segment.weights.master = range.master.narrow(0, begin, length);
  segment.weights.stochastic = range.rounds_stochastically;
  segment.weights.key = stream_key(seed, "rounding of " + opening.spec->name);
  segment.weights.place = whole_place(*opening.spec, opening.first);
  segment.grads = range.grads.narrow(0, begin, length);
  return segment;
}

/// Adds the trained matrices of a unit that are updated as a whole. Returns the index of each of its
/// parameters in the list, -1 for others.
std::vector<int> add_matrices(const OptimizerConfig& config, size_t unit, const UnitLayout& layout,
                              const std::vector<ParamRule>& rules, std::vector<WholeMatrix>& list) {
  std::vector<int> place_of;
  for (const Extent& param : layout.extents()) {
    const ParamRule& rule = rules[param.param];
    const bool is_one = !rule.frozen && updates_whole(config, rule, *param.spec);
    place_of.push_back(is_one ? static_cast<int>(list.size()) : -1);
    if (is_one) list.push_back({unit, param.spec->whole_shape(), rule});
  }
  return place_of;
}

void require_whole(const Extent& extent, const char* what) {
  TYCHO_CHECK(extent.is_whole(), "[optim] {} needs all of {}, and this rank owns elements {} to {}", what,
              extent.spec->name, extent.first, extent.first + extent.size());
}

}  // namespace

Segments make_segments(const OptimizerConfig& config, const std::vector<OwnedRange>& ranges,
                       const ParamRules& rules, uint64_t seed, Communicator* owners) {
  Segments segments{
      .state = make_state(config, ranges, rules, seed), .list = {}, .matrices = {}, .owners = owners};
  if (!ranges.empty()) segments.device = ranges.front().params.device();
  for (size_t u = 0; u < ranges.size(); ++u) {
    const std::vector<int> matrix_of = add_matrices(config, u, ranges[u].layout, rules[u], segments.matrices);
    const std::vector<Extent>& extents = ranges[u].extents;
    const auto rule_of = [&](size_t i) -> const ParamRule& { return rules[u][extents[i].param]; };
    for (size_t first = 0, end; first < extents.size(); first = end) {
      const ParamRule& rule = rule_of(first);
      if (rule.frozen) {
        end = first + 1;
        continue;
      }
      const bool whole = updates_whole(config, rule, *extents[first].spec);
      const auto alone = [&](size_t i) {
        return ranges[u].rounds_stochastically || updates_alone(config, rule, *extents[i].spec);
      };
      end = first + 1;
      while (!alone(first) && end < extents.size() && extents[end].begin == extents[end - 1].end &&
             rule_of(end) == rule && !alone(end))
        ++end;
      if (whole && owners == nullptr) require_whole(extents[first], config.kind());
      Segment segment = make_segment(ranges[u], first, end, rule, seed);
      if (whole) segment.matrix = matrix_of[extents[first].param];
      segment.num_params = static_cast<int64_t>(end - first);
      for (const StateSpec& one : state_specs(config, rule, *extents[first].spec))
        segment.state.push_back(state_view(segments.state, one, *extents[first].spec,
                                           one.scalar ? segment.num_params : segment.grads.numel()));
      segments.list.push_back(std::move(segment));
    }
  }
  return segments;
}

std::vector<Tensor> trained_grads(const std::vector<OwnedRange>& ranges, const ParamRules& rules) {
  std::vector<Tensor> grads;
  for (size_t u = 0; u < ranges.size(); ++u) {
    ShardRange joined;
    const auto add_joined = [&] {
      if (joined.size() > 0) grads.push_back(ranges[u].grads.narrow(0, joined.begin, joined.size()));
    };
    for (const Extent& extent : ranges[u].extents) {
      if (rules[u][extent.param].frozen) continue;
      for (const Extent& part : counted(extent)) {
        if (part.begin != joined.end) {
          add_joined();
          joined.begin = part.begin;
        }
        joined.end = part.end;
      }
    }
    add_joined();
  }
  if (grads.empty() && !ranges.empty())
    grads.push_back(at::empty({0}, ranges.front().params.options().dtype(at::kFloat)));
  return grads;
}

}  // namespace tycho
