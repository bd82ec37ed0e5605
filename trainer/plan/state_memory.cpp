// Adds up the buffers that the unit stores and the optimizers take.
#include "trainer/plan/state_memory.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>

#include "trainer/layout/coded_unit.h"
#include "trainer/layout/gathered_bytes.h"
#include "trainer/layout/param_rules.h"
#include "trainer/layout/unit_layout.h"
#include "trainer/recipe/ema_steps.h"

namespace tycho {
namespace {

constexpr int64_t kMasterBytes = 4, kFactorBytes = 4, kPage = 4096;

int64_t paged(int64_t num_bytes) { return (num_bytes + kPage - 1) / kPage * kPage; }

/// Returns the rules for `layout`, a rank's part. Groups match parameters of the whole model, of which a
/// stage may have none.
ParamRules rules_of(const TrainConfig& config, const ModelLayout& layout) {
  if (config.param_groups.empty()) return param_rules(config.optimizer, {}, layout.units);
  return param_rules(config.optimizer, config.param_groups, model_layout(config.model).units);
}

/// Returns the bytes of one buffer per unit with the elements that a rank owns, padded.
int64_t own_buffers(const std::vector<UnitSpec>& units, const ShardRules& rules, int64_t bytes_per_element) {
  int64_t sum = 0;
  for (const UnitSpec& unit : units) {
    const int64_t numel = rules.num_ranks == 1 ? unit.numel() : shard_elements(unit.numel(), rules.num_ranks);
    sum += paged(numel * bytes_per_element);
  }
  return sum;
}

/// Returns the places of units that are gathered as codes.
std::vector<CodedUnitLayout> coded_units(const TrainConfig& config, const std::vector<UnitSpec>& units,
                                         const ShardRules& rules) {
  std::vector<CodedUnitLayout> coded;
  for (const UnitSpec& unit : units)
    if (const auto places = coded_unit_layout(unit, rules.num_ranks);
        places && config.precision == Precision::kBf16)
      coded.push_back(*places);
  return coded;
}

int64_t shared_buffers(const UnitBuffers& buffers, int64_t bytes_per_element) {
  int64_t sum = 0;
  for (const int64_t elements : buffers.elements) sum += paged(elements * bytes_per_element);
  return sum;
}

std::vector<UnitSpec> trained_units(const TrainConfig& config, const ModelLayout& layout) {
  std::vector<UnitSpec> units = with_frozen(layout.units, rules_of(config, layout));
  std::erase_if(units, [](const UnitSpec& unit) { return unit.frozen(); });
  return units;
}

/// Returns the units that have master weights and that checkpoints hold.
std::vector<UnitSpec> without_base(std::vector<UnitSpec> units) {
  std::erase_if(units, [](const UnitSpec& unit) { return unit.base; });
  return units;
}

/// Returns the state of a parameter.
using StateOf = std::function<std::vector<StateSpec>(const ParamRule&, const ParamSpec&)>;

StateOf state_of_optimizer(const TrainConfig& config) {
  return [&config](const ParamRule& rule, const ParamSpec& param) {
    return state_specs(config.optimizer, rule, param);
  };
}

std::vector<StateSpec> state_of_average(const ParamRule& rule, const ParamSpec&) {
  return rule.frozen ? std::vector<StateSpec>() : std::vector<StateSpec>{{"ema"}};
}

/// Returns the bytes of such buffers on one rank, by unit and name, for the elements that it owns.
int64_t buffer_bytes(const StateOf& state_of, int64_t bytes_per_number, const std::vector<UnitLayout>& units,
                     const ParamRules& params, const ShardRules& rules, int64_t rank) {
  int64_t sum = 0;
  for (size_t u = 0; u < units.size(); ++u) {
    const ShardRange range = rules.num_ranks == 1 ? ShardRange{0, units[u].numel()}
                                                  : shard_range(units[u].numel(), rules.num_ranks, rank);
    std::map<std::string, int64_t> numbers;
    for (const Extent& e : units[u].extents_in(range.begin, range.end))
      for (const StateSpec& state : state_of(params[u][e.param], *e.spec))
        numbers[state.name] += state.is_like_parameter() ? e.size() : numel(state.shape);
    for (const auto& [name, count] : numbers) sum += paged(count * bytes_per_number);
  }
  return sum;
}

OptimizerBytes state_bytes(const StateOf& state_of, int64_t bytes_per_number, const ModelLayout& layout,
                           const ParamRules& params, const ShardRules& rules) {
  OptimizerBytes state;
  for (size_t u = 0; u < layout.units.size(); ++u)
    for (size_t i = 0; i < layout.units[u].params.size(); ++i)
      for (const ParamSpec& param = layout.units[u].params[i];
           const StateSpec& one : state_of(params[u][i], param)) {
        state.numbers += numel(one.is_like_parameter() ? param.shape : one.shape);
        if (std::find(state.names.begin(), state.names.end(), one.name) == state.names.end())
          state.names.push_back(one.name);
      }
  std::sort(state.names.begin(), state.names.end());
  const std::vector<UnitLayout> units(layout.units.begin(), layout.units.end());
  for (int64_t rank = 0; rank < rules.num_ranks; ++rank)
    state.num_bytes =
        std::max(state.num_bytes, buffer_bytes(state_of, bytes_per_number, units, params, rules, rank));
  return state;
}

/// Returns true for a matrix that Muon updates.
bool is_muon_matrix(const ParamRule& rule) { return rule.hidden_matrix && !rule.frozen; }

bool has_parts(const ModelLayout& layout, const ShardRules& rules) {
  return rules.num_ranks > 1 ||
         std::any_of(layout.units.begin(), layout.units.end(), [](const UnitSpec& unit) {
           return std::any_of(unit.params.begin(), unit.params.end(),
                              [](const ParamSpec& param) { return param.whole_shape() != param.shape; });
         });
}

/// Returns, when ranks share matrices, the largest part of a matrix that a rank has, and, for the unit where
/// this is most, the whole matrices of which it has parts, and another.
int64_t brought_together(const ModelLayout& layout, const ParamRules& params, const ShardRules& rules,
                         int64_t rank) {
  int64_t largest_part = 0, most = 0;
  for (size_t u = 0; u < layout.units.size(); ++u) {
    const UnitLayout unit(layout.units[u]);
    const ShardRange range =
        rules.num_ranks == 1 ? ShardRange{0, unit.numel()} : shard_range(unit.numel(), rules.num_ranks, rank);
    std::vector<bool> own(layout.units[u].params.size());
    for (const Extent& e : unit.extents_in(range.begin, range.end)) {
      if (!is_muon_matrix(params[u][e.param])) continue;
      own[e.param] = true;
      largest_part = std::max(largest_part, e.size());
    }
    int64_t together = 0, other = 0;
    for (size_t i = 0; i < own.size(); ++i) {
      if (!is_muon_matrix(params[u][i])) continue;
      const int64_t whole = numel(layout.units[u].params[i].whole_shape());
      if (own[i])
        together += whole;
      else
        other = std::max(other, whole);
    }
    most = std::max(most, together + other);
  }
  return largest_part + most;
}

/// Returns the bytes of Muon's Newton-Schulz iterations: two copies of the largest matrix, two products of
/// its shorter side, and the matrices that are being updated.
int64_t newton_schulz_bytes(const TrainConfig& config, const ModelLayout& layout, const ShardRules& shared) {
  if (!config.optimizer.is<MuonConfig>()) return 0;
  const ParamRules rules = rules_of(config, layout);
  int64_t elements = 0, side = 0;
  for (size_t u = 0; u < rules.size(); ++u)
    for (size_t i = 0; i < layout.units[u].params.size(); ++i) {
      const Shape& shape = layout.units[u].params[i].whole_shape();
      if (!is_muon_matrix(rules[u][i])) continue;
      elements = std::max(elements, numel(shape));
      side = std::max(side, std::min(shape[0], shape[1]));
    }
  int64_t updated = elements;
  if (has_parts(layout, shared)) {
    updated = 0;
    for (int64_t rank = 0; rank < shared.num_ranks; ++rank)
      updated = std::max(updated, brought_together(layout, rules, shared, rank));
  }
  return kMasterBytes * (2 * elements + 2 * side * side + updated);
}

int64_t reduced_bytes(const ShardRules& rules) { return rules.reduce_bf16 ? 2 : kMasterBytes; }

/// Returns the bytes of gradients converted to the dtype in which they are sent, if that differs from their
/// own.
int64_t sent_bytes(const std::vector<UnitSpec>& trained, const std::vector<UnitSpec>& all,
                   const ShardRules& rules) {
  if (!rules.reduce_bf16) return 0;
  return (rules.num_ranks > 1 ? shared_buffers(grad_buffers(all, rules), reduced_bytes(rules)) : 0) +
         (rules.num_replicas > 1 ? own_buffers(trained, rules, reduced_bytes(rules)) : 0);
}

/// Returns the bytes of sums of gradients that wait for others in the tree: whole units, or a rank's part of
/// them.
int64_t held_bytes(const std::vector<UnitSpec>& trained, const ShardRules& rules) {
  int64_t sum = 0;
  for (const UnitSpec& unit : trained) sum += paged(leaf_elements(unit.numel(), rules) * kMasterBytes);
  return rules.tree.most_held() * sum;
}

/// Returns the elements of all matrices of Muon.
int64_t muon_elements(const TrainConfig& config, const ModelLayout& layout) {
  if (!config.optimizer.is<MuonConfig>()) return 0;
  const ParamRules rules = rules_of(config, layout);
  int64_t sum = 0;
  for (size_t u = 0; u < rules.size(); ++u)
    for (size_t i = 0; i < layout.units[u].params.size(); ++i)
      if (is_muon_matrix(rules[u][i])) sum += numel(layout.units[u].params[i].whole_shape());
  return sum;
}

int64_t compute_bytes(const TrainConfig& config) {
  return config.precision == Precision::kBf16 ? 2 : kMasterBytes;
}

/// Returns the bytes of the copy that holds weights trained in place while their average is evaluated.
int64_t waiting_weights_bytes(const TrainConfig& config, const ModelLayout& layout, const ShardRules& rules) {
  if (config.precision != Precision::kBf16 || has_master(config) || !evaluates_ema(config)) return 0;
  return state_bytes(state_of_average, compute_bytes(config), layout, rules_of(config, layout), rules)
      .num_bytes;
}

/// Returns the part of n bytes that a rank receives from others when all ranks of a group end with all of
/// them.
int64_t from_others(int64_t num_bytes, int64_t num_ranks) { return num_bytes / num_ranks * (num_ranks - 1); }

}  // namespace

bool has_master(const TrainConfig& config) {
  return config.precision == Precision::kBf16 && config.master_weights == MasterWeights::kFp32;
}

OptimizerBytes optimizer_state(const TrainConfig& config, const ModelLayout& layout,
                               const ShardRules& rules) {
  return state_bytes(state_of_optimizer(config), kMasterBytes, layout, rules_of(config, layout), rules);
}

OptimizerBytes average_state(const TrainConfig& config, const ModelLayout& layout, const ShardRules& rules) {
  if (!keeps_average(config)) return {};
  return state_bytes(state_of_average, kMasterBytes, layout, rules_of(config, layout), rules);
}

std::vector<ByteItem> state_memory(const TrainConfig& config, const ModelLayout& layout,
                                   const ShardRules& rules) {
  const bool shared = rules.num_ranks > 1;
  const std::string type = config.precision == Precision::kBf16 ? "bf16" : "fp32";
  const auto note = [&](const std::string& text) {
    return shared ? fmt::format("{}, 1/{} of every unit", text, rules.num_ranks) : text;
  };
  const std::vector<UnitSpec> units = with_frozen(layout.units, rules_of(config, layout));
  std::vector<ByteItem> items;
  items.push_back({"parameters", own_buffers(units, rules, compute_bytes(config)), note(type)});
  if (shared) {
    const UnitBuffers buffers = param_buffers(units, rules);
    items.push_back({"whole units", shared_buffers(buffers, compute_bytes(config)),
                     fmt::format("{}, {} at a time", type, buffers.elements.size())});
  }
  int64_t codes = 0;
  for (const CodedUnitLayout& unit : coded_units(config, units, rules))
    codes += paged(unit.bytes_each()) + paged(unit.num_factors() * kFactorBytes);
  if (codes > 0) items.push_back({"codes", codes, note("fp8, and factors")});
  items.push_back(
      {"gradients", own_buffers(trained_units(config, layout), rules, kMasterBytes), note("fp32")});
  if (shared) {
    const UnitBuffers buffers = grad_buffers(units, rules);
    items.push_back({"whole gradients", shared_buffers(buffers, kMasterBytes),
                     fmt::format("fp32, {} units at a time", buffers.elements.size())});
  }
  if (const int64_t num_bytes = sent_bytes(trained_units(config, layout), units, rules); num_bytes > 0)
    items.push_back({"gradients sent", num_bytes, "bf16"});
  if (const int64_t num_bytes = held_bytes(trained_units(config, layout), rules); num_bytes > 0)
    items.push_back({"gradients held", num_bytes,
                     fmt::format("fp32, {} {} for reduce = \"canonical\"", rules.tree.most_held(),
                                 rules.cp == 1 ? "whole" : fmt::format("times 1/{}", rules.cp))});
  const OptimizerBytes state = optimizer_state(config, layout, rules);
  std::vector<std::string> names = state.names;
  if (has_master(config)) names.insert(names.begin(), "fp32 master");
  items.push_back(
      {"optimizer",
       state.num_bytes + (has_master(config) ? own_buffers(without_base(units), rules, kMasterBytes) : 0),
       names.empty() ? "no state" : fmt::format("{}", fmt::join(names, ", "))});
  if (const int64_t num_bytes = newton_schulz_bytes(config, layout, rules); num_bytes > 0)
    items.push_back({"optimizer scratch", num_bytes,
                     has_parts(layout, rules) ? "Newton-Schulz, whole matrices of one unit at a time"
                                              : "Newton-Schulz, one matrix at a time"});
  if (keeps_average(config)) {
    const int64_t waiting = waiting_weights_bytes(config, layout, rules);
    items.push_back({"average", average_state(config, layout, rules).num_bytes + waiting,
                     waiting > 0 ? "fp32 ema, and room for bf16 weights while it is evaluated" : "fp32 ema"});
  }
  return items;
}

int64_t state_copy_bytes(const TrainConfig& config, const ModelLayout& layout, const ShardRules& rules) {
  return own_buffers(without_base(layout.units), rules, kMasterBytes) +
         optimizer_state(config, layout, rules).num_bytes + average_state(config, layout, rules).num_bytes;
}

std::vector<ByteItem> step_traffic(const TrainConfig& config, const ModelLayout& layout,
                                   const ShardRules& rules, int64_t num_replicas, int64_t micro_batches) {
  const std::vector<UnitSpec> trained = trained_units(config, layout);
  int64_t reduced = 0, own = 0;  // elements
  for (const UnitSpec& unit : trained) {
    const int64_t each = rules.num_ranks == 1 ? unit.numel() : shard_elements(unit.numel(), rules.num_ranks);
    reduced += each * rules.num_ranks;
    own += each;
  }
  std::vector<ByteItem> items;
  if (rules.num_ranks > 1) {
    const std::vector<UnitSpec> units = with_frozen(layout.units, rules_of(config, layout));
    const int64_t gathered = gathered_bytes(units, rules, micro_batches, compute_bytes(config));
    const size_t num_coded = coded_units(config, units, rules).size();
    const int64_t times = rules.keep_grads ? 1 : micro_batches;
    items.push_back(
        {"dp_shard", from_others(gathered, rules.num_ranks),
         config.model.fp8.gather
             ? fmt::format("parameters gathered, {} of {} units as codes of fp8", num_coded, units.size())
             : "parameters gathered"});
    items.push_back(
        {"dp_shard", from_others(reduced * reduced_bytes(rules) * times, rules.num_ranks),
         fmt::format("gradients summed, {}", times == 1 ? "once" : std::to_string(times) + " times")});
  }
  if (const int64_t elements = muon_elements(config, layout); elements > 0 && has_parts(layout, rules)) {
    const bool sharded = rules.num_ranks > 1;
    const int64_t num_ranks = sharded ? rules.num_ranks : config.parallel.tp;
    items.push_back({sharded ? "dp_shard" : "tp", 2 * from_others(elements * kMasterBytes, num_ranks),
                     "matrices of muon brought together, once"});
  }
  if (num_replicas > 1)
    items.push_back({"dp_replicate", 2 * from_others(own * reduced_bytes(rules), num_replicas),
                     "gradients summed over copies, once"});
  return items;
}

}  // namespace tycho
