// Numbers of an optimizer that a live run can change: its keys by their names in the recipe. Torch-free.
#pragma once
#include <map>
#include <string>

#include "trainer/base/json.h"
#include "trainer/recipe/optim.h"
#include "trainer/recipe/train_config.h"

namespace tycho {

/// Returns true for a number, and for a list of numbers.
bool is_number_or_list(const Json& value);

/// Throws Error (kRecipe) that says why a run cannot change this key of the optimizer, and what to do
/// instead: there is none of that name, it is no number, or the formulas of an optimizer of the recipe have
/// it built in.
void require_settable(const OptimizerConfig& optimizer, const std::string& name);

/// Returns the recipe's optimizer with these values, numbers or lists of numbers by name. Throws Error
/// (kRecipe) like require_settable(), for values that the key does not take, and for numbers that change
/// which state is kept.
OptimizerConfig with_numbers(const TrainConfig& recipe, const std::map<std::string, Json>& numbers);

}  // namespace tycho
