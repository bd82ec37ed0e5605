// The sets that a recipe evaluates on: what they may be called, and what their metrics are. Torch-free.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "trainer/recipe/data.h"

namespace tycho {

using EvalData = std::map<std::string, DataConfig>;

/// Returns why a set cannot have this name; "" when it can.
std::string eval_name_problem(const std::string& name);

/// Returns the metrics by which runs can be compared: "eval.loss" and "eval.perplexity" over all sets,
/// "eval.NAME.loss" and "eval.NAME.perplexity" of each. Empty without sets.
std::vector<std::string> eval_metrics(const EvalData& sets);

}  // namespace tycho
