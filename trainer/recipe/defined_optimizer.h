// Optimizers that recipes write in Lua.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/config_problems.h"
#include "trainer/base/defined_kind.h"
#include "trainer/base/function_ref.h"
#include "trainer/base/json.h"
#include "trainer/recipe/decay_mask.h"
#include "trainer/recipe/state_spec.h"

namespace tycho {

/// Base of the kinds that t.optim.define makes. `updates` is what the function computes, traced once for each
/// kind of parameter:
///   [{"shape": [768, 3072], "hidden": true, "whole": true, "expression": {...},
///     "states": [{"name": "exp_avg"}, {"name": "rows", "shape": [768, 1]}, {"name": "sum", "scalar":
///     true}]}]
/// Without "shape" it is for parameters of all other shapes. The expression's inputs are "p", "g", "s.NAME"
/// and the scalars "h.NAME", its outputs "p" and "s.NAME"; a vector has the shape [1, n]. "whole": it has
/// reductions or operations on matrices. `number_limits` are those of the values that are numbers, or lists
/// of numbers: [{"name": "beta", "min": 0, "max": 1, "max_exclusive": true}].
struct DefinedOptimizerConfig : DefinedKind {
  static constexpr const char* kKind = "defined";
  static constexpr const char* kHelp = "An optimizer that the recipe defines.";
  static constexpr bool kOnlyBase = true;
  double lr = 1e-3;
  double weight_decay = 0.0;
  DecayMask decay_mask = DecayMask::kMatrices;
  Json updates = json_array();
  Json number_limits = json_array();
  FunctionRef code;

  /// Returns the entry of `updates` for parameters of a shape. `hidden_matrix` is true for a matrix of a
  /// block. Throws Error (kRecipe) when there is none.
  const Json& update_of(const std::vector<int64_t>& shape, bool hidden_matrix) const;
  std::vector<StateSpec> state_specs(const std::vector<int64_t>& shape, bool hidden_matrix) const;
  bool updates_whole(const std::vector<int64_t>& shape, bool hidden_matrix) const;
  /// Returns values.betas if they are two numbers.
  std::optional<std::array<double, 2>> betas() const;
  /// Throws Error (kRecipe) that says what is wrong with `updates`, which t.optim.define writes.
  void check_updates() const;
  /// Returns what is wrong with values outside of their limits.
  std::vector<ConfigProblem> limit_problems() const;
  /// Returns the names of the values that are inputs of the formulas, and true for those that a formula uses.
  std::map<std::string, bool> inputs() const;
  /// Returns true if the update is that of one shape, so that no neighbour shares it.
  bool updates_alone(const std::vector<int64_t>& shape, bool hidden_matrix) const;

  template <class Visitor>
  void fields(Visitor& v) {
    v("lr", lr, "Peak learning rate, after warm-up.", positive, required);
    v("weight_decay", weight_decay, "Weight decay: h.weight_decay of the parameters that decay.",
      at_least(0));
    v("decay_mask", decay_mask, kDecayMaskHelp);
    v("updates", updates, "What the function computes, traced.");
    v("number_limits", number_limits, "Limits of the kind's own numbers, for commands that change them.");
    v("code", code, "The function in the recipe.");
  }
};

}  // namespace tycho
