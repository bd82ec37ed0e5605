// Reads metrics and evaluations from a run folder, by the names that sweeps use. Torch-free.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "trainer/base/goal.h"
#include "trainer/base/json.h"
#include "trainer/metrics/curve.h"
#include "trainer/metrics/line_tail.h"
#include "trainer/sweep/board.h"
#include "trainer/sweep/config.h"

namespace tycho {

/// Returns the name that metrics.jsonl has for a metric of a sweep: "loss" for "train.loss".
std::string recorded_name(const std::string& metric);

/// Reads the folder of an active run: each call of update() reads the new records. Owned by one thread. A
/// missing file means that the run has not begun.
class RunProgress {
 public:
  explicit RunProgress(const std::string& run_dir)
      : metrics_(run_dir + "/metrics.jsonl"), events_(run_dir + "/events.jsonl") {}
  /// Returns true when there is something new.
  bool update();

  int64_t step() const { return step_; }
  int64_t tokens() const { return tokens_; }
  /// Returns a metric over steps, with later attempts replacing earlier ones: "eval.loss", "eval.NAME.loss",
  /// or a number of metrics.jsonl ("loss", "train.loss").
  const Curve& series(const std::string& name) const;
  /// Returns the losses of the newest evaluations: "eval.loss", and "eval.NAME.loss" of each set.
  std::map<std::string, double> eval_losses() const;
  /// Returns the newest numbers in the form for rules: {step, tokens, train: {loss, lr, ...}, eval: {loss,
  /// ..., NAME: {loss, ...}}}.
  Json newest() const { return newest_; }

 private:
  void take_metrics(const Json& record);
  void take_event(const Json& record);
  void take_figures(const Json& record, const std::string& set);

  LineTail metrics_, events_;
  int64_t step_ = 0, tokens_ = 0;
  std::map<std::string, GatheredCurve> series_;
  Json newest_ = json_object();
};

/// Returns the value by which trials are compared: the last value of an evaluation; for a number of single
/// steps the mean over the last tenth of the records, because one step says little. nullopt when the run
/// never had it.
std::optional<double> comparable_value(const RunProgress& progress, const std::string& metric);
RungResult rung_result(const RunProgress& progress, const std::string& metric);

/// Returns true when the rule says that the run no longer improves.
bool is_out_of_patience(const PatienceRule& rule, const RunProgress& progress, Goal goal);

}  // namespace tycho
