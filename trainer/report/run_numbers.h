// The numbers of a run, from metrics.jsonl and evals.jsonl, as far as a summary needs them. Torch-free.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/metrics/curve.h"
#include "trainer/report/growing_curve.h"
#include "trainer/report/run_events.h"
#include "trainer/report/run_summary.h"

namespace tycho {

/// Tokens and seconds trained so far, at some of the steps: as many as a page shows.
class TrainingClock {
 public:
  void add(double step, double tokens, double seconds);
  void cut_after(double step);
  Curve tokens() const { return curve(&Knot::tokens); }
  Curve seconds() const { return curve(&Knot::seconds); }

 private:
  struct Knot {
    double step = 0, tokens = 0, seconds = 0;
  };
  Curve curve(double Knot::*member) const;

  std::vector<Knot> knots_;  // of every `stride_`th step
  std::optional<Knot> last_;
  int64_t stride_ = 1, num_since_ = 0;  // steps since the last knot
};

/// Gathers the numbers of a run in the order of their files.
class RunNumbers {
 public:
  /// `patterns` as in summarize_run. Curves end at `last_step`. `kept` has the last steps before those that
  /// attempts trained anew, by attempt, as far as they are known beforehand.
  RunNumbers(const std::vector<std::string>& patterns, int64_t last_step, std::map<int64_t, int64_t> kept)
      : patterns_(patterns), last_step_(last_step), kept_(std::move(kept)) {}

  /// Takes a record of metrics.jsonl.
  void take(const Json& record, RunEvents& events);
  /// Takes a record of a process beside the run, which evaluates the weights of each step once, or their
  /// average. What the run itself does not evaluate has a name of its own: eval.ema.loss, eval.trained.loss.
  void take_beside(const Json& record);
  /// Forgets the steps that attempts trained anew.
  void forget(const std::map<int64_t, int64_t>& kept);
  /// Returns true when steps were to be forgotten that are in buckets with others. The files must then be
  /// read again, with kept_steps().
  bool is_stale() const { return is_stale_; }
  const std::map<int64_t, int64_t>& kept_steps() const { return kept_; }
  /// Writes what the numbers say into a summary, which has what the events say.
  void summarize(RunSummary& run) const;

 private:
  /// A key of metrics.jsonl.
  struct Metric {
    bool is_wanted = false, is_accuracy = false;
    GrowingCurve curve;
    double newest = 0;  // of an accuracy
    bool has_newest = false;
  };
  /// The steps of the newest attempt, from which the steady numbers are computed.
  struct SteadySteps {
    int64_t attempt = 0;
    double num = 0;
    std::vector<double> tokens_per_s, mfu;
    GrowingCurve step_s, data_wait_s;
  };

  void forget(int64_t attempt, int64_t kept);
  bool is_forgotten(int64_t step, int64_t attempt) const;
  Metric& metric_of(const std::string& name);
  void take_step(const Json& record, int64_t step, int64_t attempt, RunEvents& events);
  void take_steady(const Json& record, int64_t attempt);
  std::map<std::string, std::map<double, double>> beside(const RunSummary& run) const;

  std::vector<std::string> patterns_;
  int64_t last_step_;
  std::map<int64_t, int64_t> kept_;
  bool is_stale_ = false;
  int64_t attempt_ = 0;  // the newest one
  std::map<std::string, Metric> metrics_;
  std::map<std::pair<std::string, std::string>, std::map<double, double>> beside_;  // by weights and metric
  TrainingClock clock_;
  int64_t step_ = 0, tokens_ = 0, own_tokens_ = 0, memory_bytes_ = 0;
  std::optional<int64_t> parents_tokens_;  // of a fork; 0 without a parent
  SteadySteps steady_;
};

}  // namespace tycho
