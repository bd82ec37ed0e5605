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
/// "eval.NAME.loss" and "eval.NAME.perplexity" of each; with a tokenizer, "bits_per_byte", too. Empty without
/// sets.
std::vector<std::string> eval_metrics(const EvalData& sets, bool has_tokenizer);

/// Returns what to add to the message that `metric` is not among `known`, the metrics of some sets: why there
/// are no bits per byte; "" for other metrics.
std::string why_not_measured(const std::string& metric, const std::vector<std::string>& known);

}  // namespace tycho
