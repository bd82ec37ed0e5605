// Evaluation during training: when it happens, the sets, what these may be called, and their metrics.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/duration.h"
#include "trainer/base/fields.h"
#include "trainer/recipe/data.h"

namespace tycho {

struct EvalConfig {
  std::optional<Duration> every;
  int64_t batches = 0;
  bool first = false;

  template <class Visitor>
  void fields(Visitor& v) {
    v("every", every,
      "Evaluate whenever this much training is done, and at the end. Default: only at the end.",
      units("ba tok sp ep dur"), positive);
    v("batches", batches,
      "Batches of global_batch sequences to take from the start of each set; 0 takes all.", at_least(0));
    v("first", first, "Evaluate before the first step too.");
  }
};

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

class ConfigProblems;

/// Reports keys that have no effect without sets to evaluate on.
void check(const EvalConfig& eval, const EvalData& sets, ConfigProblems& problems);
/// Reports names that a set cannot have.
void check_names(const EvalData& sets, ConfigProblems& problems);
/// Reports problems of the sets themselves, and sets that are not comparable with the training data.
void check_sets(const EvalData& sets, const DataConfig& train_data, int64_t vocab_size, bool has_tokenizer,
                ConfigProblems& problems);

}  // namespace tycho
