// Joins neighbours with the same rule, so that one kernel call updates them.
#include "trainer/optim/segments.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <set>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/random/philox.h"
#include "trainer/layout/tp_parts.h"
#include "trainer/layout/unit_shards.h"
#include "trainer/sharding/arena.h"

namespace tycho {
namespace {

// Adds the buffer `name` of a range, unless none of its parameters has that state.
void add_buffer(const OptimizerConfig& config, const OwnedRange& range, const std::vector<ParamRule>& rules,
                const std::string& name, std::vector<StateBuffer>& state) {
  StateBuffer buffer{.name = name, .extents = {}, .flat = {}};
  int64_t numel = 0;
  for (const Extent& e : range.extents) {
    const std::vector<std::string> names = state_names(config, rules[e.param]);
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    buffer.extents.push_back({numel, numel + e.size(), e.spec, e.param, e.first});
    numel += e.size();
  }
  if (numel == 0) return;
  buffer.flat = arena_view(make_arena(numel * 4, range.params.device()), 0, {numel}, at::kFloat);
  state.push_back(std::move(buffer));
}

std::vector<StateBuffer> make_state(const OptimizerConfig& config, const std::vector<OwnedRange>& ranges,
                                    const ParamRules& rules) {
  std::vector<StateBuffer> state;
  std::set<std::string> names;  // sorted like checkpoints
  for (const std::vector<ParamRule>& unit : rules)
    for (const ParamRule& rule : unit)
      for (std::string& name : state_names(config, rule)) names.insert(std::move(name));
  for (const std::string& name : names)
    for (size_t u = 0; u < ranges.size(); ++u) add_buffer(config, ranges[u], rules[u], name, state);
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

/// Adds the trained matrices of a unit. Returns the index of each of its parameters in the list, -1 for
/// others.
std::vector<int> add_matrices(size_t unit, const UnitLayout& layout, const std::vector<ParamRule>& rules,
                              std::vector<WholeMatrix>& list) {
  std::vector<int> place_of;
  for (const Extent& param : layout.extents()) {
    const bool is_one = rules[param.param].hidden_matrix && !rules[param.param].frozen;
    place_of.push_back(is_one ? static_cast<int>(list.size()) : -1);
    if (is_one) list.push_back({unit, param.spec->whole_shape()});
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
  Segments segments{.state = make_state(config, ranges, rules), .list = {}, .matrices = {}, .owners = owners};
  if (!ranges.empty()) segments.device = ranges.front().params.device();
  for (size_t u = 0; u < ranges.size(); ++u) {
    const std::vector<int> matrix_of = updates_whole_matrices(config)
                                           ? add_matrices(u, ranges[u].layout, rules[u], segments.matrices)
                                           : std::vector<int>();
    const std::vector<Extent>& extents = ranges[u].extents;
    const auto rule_of = [&](size_t i) -> const ParamRule& { return rules[u][extents[i].param]; };
    for (size_t first = 0, end; first < extents.size(); first = end) {
      const ParamRule& rule = rule_of(first);
      const bool whole = updates_whole_matrices(config) && rule.hidden_matrix;
      const bool alone = ranges[u].rounds_stochastically || whole;
      end = first + 1;
      while (!alone && end < extents.size() && rule_of(end) == rule) ++end;
      if (rule.frozen) continue;
      if (whole && owners == nullptr) require_whole(extents[first], config.kind());
      Segment segment = make_segment(ranges[u], first, end, rule, seed);
      if (whole) segment.matrix = matrix_of[extents[first].param];
      for (const std::string& name : state_names(config, rule))
        segment.state.push_back(state_view(segments.state, name, extents[first].spec, segment.grads.numel()));
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
