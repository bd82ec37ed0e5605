// Configuration of evaluation during training, except its data.
#pragma once
#include <cstdint>
#include <optional>

#include "trainer/base/duration.h"
#include "trainer/base/fields.h"
#include "trainer/recipe/data.h"
#include "trainer/recipe/eval_sets.h"

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

class ConfigProblems;

/// Reports keys that have no effect without sets to evaluate on.
void check(const EvalConfig& eval, const EvalData& sets, ConfigProblems& problems);
/// Reports names that a set cannot have.
void check_names(const EvalData& sets, ConfigProblems& problems);
/// Reports problems of the sets themselves, and sets that are not comparable with the training data.
void check_sets(const EvalData& sets, const DataConfig& train_data, int64_t vocab_size, bool has_tokenizer,
                ConfigProblems& problems);

}  // namespace tycho
