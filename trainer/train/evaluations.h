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
#include "trainer/recipe/eval.h"
#include "trainer/recipe/train_config.h"
#include "trainer/session/eval_result.h"
#include "trainer/sharding/unit_store.h"
#include "trainer/tasks/result.h"
#include "trainer/train/loop_context.h"

namespace tycho {

/// Measures the model on held-out data and reports the results; changes no state of training. Adds its time
/// to `throughput` as a pause. Owned by one thread.
class Evaluations {
 public:
  /// `average` is evaluated in place of the trained weights once it has begun; null for none. Reports name
  /// `run_dir`. All other arguments must outlive this object.
  Evaluations(const TrainConfig& recipe, std::string run_dir, const LoopContext& context, Model& model,
              UnitStore& units, WeightAverage* average, Throughput& throughput);

  /// Reopens the data sets, and reads the tasks at the first call. Throws Error (kUnusable).
  void open();
  bool has_sets() const { return !sets_.empty(); }
  bool has_tasks() const { return tasks_ != nullptr; }
  /// Returns true for the name of one set among several; false for "" and for the only set. Throws Error
  /// (kUsage) for an unknown name.
  bool is_one_of_several(const std::string& name) const;
  /// Returns the loss on each set after `step` steps; nullopt when a stop came first. Records the newest and
  /// the best results in `records`. Collective.
  std::optional<EvalResults> evaluate(int64_t step, EvalRecords& records);
  /// Returns the loss on one set; nullopt when a stop came first. Requires is_one_of_several(name).
  /// Collective.
  std::optional<EvalResults> evaluate_one(const std::string& name, int64_t step);
  /// Evaluates the tasks. Returns false when a stop came first; true without tasks. Collective.
  bool evaluate_tasks(int64_t step);

 private:
  bool is_of_average() const { return average_ != nullptr && average_->has_begun(); }
  /// Returns " the average of the weights" or " the weights of eval_weights" when those are evaluated, else
  /// "".
  const char* evaluated_weights() const;
  /// Calls `measure` while the model computes with the weights to be evaluated. Restores the trained weights
  /// when it returns or throws.
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

/// Drops the results of sets that the recipe no longer names, and with them the total, which is not
/// comparable over other sets.
void forget_other_sets(EvalRecords& records, const EvalData& sets);

}  // namespace tycho
