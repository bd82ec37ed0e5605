// Evaluations during training: the loss on the sets of eval_data, and tasks in context.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "trainer/callbacks/callback.h"
#include "trainer/eval/evaluate.h"
#include "trainer/eval/icl_evaluator.h"
#include "trainer/metrics/throughput.h"
#include "trainer/models/model.h"
#include "trainer/optim/weight_average.h"
#include "trainer/recipe/eval_sets.h"
#include "trainer/recipe/train_config.h"
#include "trainer/session/eval_result.h"
#include "trainer/sharding/unit_store.h"
#include "trainer/tasks/result.h"
#include "trainer/train/loop_context.h"

namespace tycho {

/// Measures the model on held-out data and reports the results; changes nothing that training reads. Their
/// time is a pause of `throughput`. Owned by one thread.
class Evaluations {
 public:
  /// `average`: evaluated in place of the trained weights once it has begun; null: never. `run_dir` is named
  /// in reports. All arguments but `run_dir` outlive the evaluations.
  Evaluations(const TrainConfig& recipe, std::string run_dir, const LoopContext& context, Model& model,
              UnitStore& units, WeightAverage* average, Throughput& throughput);

  /// Opens the data sets anew, and reads the tasks when it is called first. Throws Error (kUnusable).
  void open();
  bool has_sets() const { return !sets_.empty(); }
  bool has_tasks() const { return tasks_ != nullptr; }
  /// Returns true for the name of one set among several; false for "" and for the only set. Throws Error
  /// (kUsage) for a name that is not there.
  bool is_one_of_several(const std::string& name) const;
  /// Returns the loss on each set after `step` steps, or nothing when a stop came first. Notes the newest and
  /// the best results in `records`. Collective.
  std::optional<EvalResults> evaluate(int64_t step, EvalRecords& records);
  /// Returns the loss on one set, which is_one_of_several(), or nothing when a stop came first. Collective.
  std::optional<EvalResults> evaluate_one(const std::string& name, int64_t step);
  /// Asks the tasks. Returns false when a stop came first; true without tasks. Collective.
  bool evaluate_tasks(int64_t step);

 private:
  bool is_of_average() const { return average_ != nullptr && average_->has_begun(); }
  /// Returns " the average of the weights" where that is evaluated, else "".
  const char* evaluated_weights() const { return is_of_average() ? " the average of the weights" : ""; }
  /// Calls `measure` while the model computes with the weights that are to be evaluated; the trained weights
  /// are back when it returns or throws.
  void with_evaluated_weights(const std::function<void()>& measure);
  std::optional<EvalResult> evaluate_set(const std::string& name, Evaluator& set, int64_t step);
  void report(const std::string& name, const EvalResult& result, int64_t step);
  void report_figures(const std::string& prefix, const EvalResult& result, int64_t step);
  void report_outputs(const IclResults& results, int64_t step);

  const TrainConfig& recipe_;
  std::string run_dir_;
  const LoopContext& context_;
  Model& model_;
  UnitStore& units_;
  WeightAverage* average_;
  Throughput& throughput_;
  std::map<std::string, Evaluator> sets_;
  std::unique_ptr<IclEvaluator> tasks_;  // null without tasks
};

/// Forgets the results of sets that the recipe no longer names, and the total with them: over other sets it
/// is another number.
void forget_other_sets(EvalRecords& records, const EvalData& sets);

}  // namespace tycho
