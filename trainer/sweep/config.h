// Configuration of sweeps: the space, the search, when trials stop, where they run. Torch-free.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/base/duration.h"
#include "trainer/base/fields.h"
#include "trainer/base/goal.h"

namespace tycho {

/// Values in the form of command-line arguments: "6e-4", "cosine", "50ba".
using SpaceValues = std::vector<std::string>;
/// Other keys of the space, and their values for which a dimension exists; empty: always.
using SpaceCondition = std::map<std::string, std::string>;

inline constexpr const char* kWhenHelp = "Conditions on other keys under which this key is drawn.";

struct ChoiceSpace {
  static constexpr const char* kKind = "choice";
  static constexpr const char* kHelp = "One of the given values.";
  SpaceValues values;
  SpaceCondition when;
  template <class Visitor>
  void fields(Visitor& v) {
    v("values", values, "The values.", required);
    v("when", when, kWhenHelp);
  }
};

/// A dimension between two ends.
template <class Number>
struct BoundedSpace {
  Number low = 0, high = 1;
  SpaceCondition when;
  template <class Visitor, class... Rules>
  void bounds(Visitor& v, Rules... rules) {
    v("low", low, "The lowest value.", rules..., required);
    v("high", high, "The highest value.", rules..., required);
    v("when", when, kWhenHelp);
  }
};

struct RangeSpace : BoundedSpace<double> {
  static constexpr const char* kKind = "range";
  static constexpr const char* kHelp = "A number between two others, on a linear scale.";
  template <class Visitor>
  void fields(Visitor& v) {
    bounds(v);
  }
};

struct LogSpace : BoundedSpace<double> {
  static constexpr const char* kKind = "log";
  static constexpr const char* kHelp = "A number between two others, on a logarithmic scale.";
  LogSpace() { low = 1, high = 10; }
  template <class Visitor>
  void fields(Visitor& v) {
    bounds(v, positive);
  }
};

struct IntSpace : BoundedSpace<int64_t> {
  static constexpr const char* kKind = "int";
  static constexpr const char* kHelp = "An integer between two others, both included.";
  template <class Visitor>
  void fields(Visitor& v) {
    bounds(v);
  }
};

struct NormalSpace {
  static constexpr const char* kKind = "normal";
  static constexpr const char* kHelp = "A normally distributed number.";
  double mean = 0, std = 1;
  SpaceCondition when;
  template <class Visitor>
  void fields(Visitor& v) {
    v("mean", mean, "The mean.", required);
    v("std", std, "The standard deviation.", positive, required);
    v("when", when, kWhenHelp);
  }
};

struct ZipSpace {
  static constexpr const char* kKind = "zip";
  static constexpr const char* kHelp =
      "Several keys that change together: all first values, all second values, ...";
  std::map<std::string, SpaceValues> keys;
  SpaceCondition when;
  template <class Visitor>
  void fields(Visitor& v) {
    v("keys", keys, "Recipe key to its values; all lists have the same length.", required);
    v("when", when, kWhenHelp);
  }
};

/// A space of one key, chosen by a condition.
struct SpaceCase : OneOf<ChoiceSpace, RangeSpace, LogSpace, IntSpace, NormalSpace> {
  static constexpr const char* kNamespace = "space";
};

struct CasesSpace {
  static constexpr const char* kKind = "cases";
  static constexpr const char* kHelp =
      "Several spaces of one key: the first whose condition holds is drawn from.";
  std::vector<SpaceCase> cases;
  template <class Visitor>
  void fields(Visitor& v) {
    v("cases", cases, "The spaces, most with a condition.", required);
  }
};

struct SpaceConfig : OneOf<ChoiceSpace, RangeSpace, LogSpace, IntSpace, NormalSpace, ZipSpace, CasesSpace> {
  static constexpr const char* kNamespace = "space";
};

struct GridSearch {
  static constexpr const char* kKind = "grid";
  static constexpr const char* kHelp = "Every combination.";
  std::map<std::string, int64_t> points;
  template <class Visitor>
  void fields(Visitor& v) {
    v("points", points, "Recipe key to its number of values, for range, log and int.", positive);
  }
};

struct RandomSearch {
  static constexpr const char* kKind = "random";
  static constexpr const char* kHelp = "Independently drawn points.";
  int64_t trials = 20, seed = 1;
  template <class Visitor>
  void fields(Visitor& v) {
    v("trials", trials, "How many.", in_range(1, 1000000));
    v("seed", seed, "Another seed draws other points.", at_least(0));
  }
};

/// Asynchronous successive halving (Li et al. 2020, arXiv:1810.05934).
struct AshaSearch {
  static constexpr const char* kKind = "asha";
  static constexpr const char* kHelp =
      "Random points; of the trials that reach a rung, the best 1/eta continue.";
  int64_t trials = 20, seed = 1;
  double eta = 3;
  std::vector<Duration> rungs;
  template <class Visitor>
  void fields(Visitor& v) {
    v("trials", trials, "Number of trials to start.", in_range(1, 1000000));
    v("seed", seed, "Another seed draws other points.", at_least(0));
    v("eta", eta, "One out of this many trials continues from each rung.", in_range(2, 1000));
    v("rungs", rungs, "Training lengths at which trials are compared; the last is the full length.",
      units("ba tok sp ep dur"), positive, required);
  }
};

struct SearchConfig : OneOf<RandomSearch, GridSearch, AshaSearch> {
  static constexpr const char* kNamespace = "search";
};

struct MetricConfig {
  std::string name = "eval.loss";
  Goal goal = Goal::kMin;
  template <class Visitor>
  void fields(Visitor& v) {
    v("name", name,
      "What trials are compared by: eval.loss, eval.NAME.loss of a set of eval_data, or a number of "
      "metrics.jsonl such as loss.");
    v("goal", goal, "Which end is better.");
  }
};

struct PatienceRule {
  static constexpr const char* kKind = "patience";
  static constexpr const char* kHelp = "Stops a trial whose metric no longer improves.";
  std::string metric = "eval.loss";
  int64_t evals = 4;
  double min_delta = 0;
  template <class Visitor>
  void fields(Visitor& v) {
    v("metric", metric, "The metric, named as in metric.name.");
    v("evals", evals, "Number of values in a row without improvement that end the trial.", at_least(1));
    v("min_delta", min_delta, "Smallest change that counts as improvement.", at_least(0));
  }
};

struct FunctionRule {
  static constexpr const char* kKind = "rule";
  static constexpr const char* kHelp = "A function of the newest numbers: s.stop.name = function(m) ... end.";
  template <class Visitor>
  void fields(Visitor&) {}
};

struct StopConfig : OneOf<PatienceRule, FunctionRule> {
  static constexpr const char* kNamespace = "stop";
};

struct WorkersLaunch {
  static constexpr const char* kKind = "workers";
  static constexpr const char* kHelp = "Trials on this machine.";
  int64_t count = 1;
  template <class Visitor>
  void fields(Visitor& v) {
    v("count", count, "Trials at once; those without `threads` share the cores.", in_range(1, 1024));
  }
};

struct LocalGpusLaunch {
  static constexpr const char* kKind = "local_gpus";
  static constexpr const char* kHelp = "As many trials at once as this machine's GPUs allow.";
  int64_t per_trial = 1;
  template <class Visitor>
  void fields(Visitor& v) {
    v("per_trial", per_trial, "GPUs of one trial.", in_range(1, 64));
  }
};

struct SlurmArrayLaunch {
  static constexpr const char* kKind = "slurm_array";
  static constexpr const char* kHelp = "A Slurm array of identical tasks that work through the trials.";
  int64_t nodes = 1, gpus = 0, max_running = 4;
  std::string time = "1h", partition, account;
  bool requeue = true;
  std::vector<std::string> options;
  template <class Visitor>
  void fields(Visitor& v) {
    v("nodes", nodes, "Nodes of one trial.", in_range(1, 100000));
    v("gpus", gpus, "GPUs per node.", in_range(0, 64));
    v("time", time, "Time limit of a task: 4h, 90m, or in Slurm's own notation.");
    v("max_running", max_running, "Tasks at once.", in_range(1, 100000));
    v("partition", partition, "Slurm's partition; \"\" for its default.");
    v("account", account, "Slurm's account; \"\" for its default.");
    v("requeue", requeue, "Requeue tasks that were preempted or reached their time limit.");
    v("options", options, "Additional #SBATCH lines, such as \"--exclude=n[1-3]\".");
  }
};

struct LaunchConfig : OneOf<WorkersLaunch, LocalGpusLaunch, SlurmArrayLaunch> {
  static constexpr const char* kNamespace = "launch";
};

struct SweepReportConfig {
  std::string sort;
  std::vector<std::string> columns;
  template <class Visitor>
  void fields(Visitor& v) {
    v("sort", sort, "Column to sort tables by; \"\" for the metric.");
    v("columns", columns,
      "Columns of tables: recipe keys, the metric, eval.NAME.loss, trial, state, rung, step, tokens, wall.");
  }
};

struct SweepConfig {
  std::string recipe;
  std::map<std::string, std::string> pins;
  MetricConfig metric;
  std::map<std::string, SpaceConfig> space;
  SearchConfig search;
  std::vector<int64_t> seeds;
  int64_t finalists = 2;
  std::map<std::string, StopConfig> stop;
  LaunchConfig launch;
  SweepReportConfig report;
  Duration heartbeat = {10, DurationUnit::kSecond};
  int64_t keep_checkpoints = 0;

  template <class Visitor>
  void fields(Visitor& v) {
    v("recipe", recipe, "The recipe that all trials run.", required);
    v("pins", pins, "Recipe keys with the same value in all trials.");
    v("metric", metric, "What trials are compared by.");
    v("space", space, "Recipe keys and their possible values.");
    v("search", search, "How points of the space are chosen.");
    v("seeds", seeds, "Seeds with which the best trials run again, to measure the effect of chance.",
      at_least(0));
    v("finalists", finalists, "How many of the best trials run again with each seed.", at_least(1));
    v("stop", stop, "Rules that end a trial early, by name.");
    v("launch", launch, "Where trials run.");
    v("report", report, "Contents of tables.");
    v("heartbeat", heartbeat,
      "How often a worker signals that it is alive; after three missed signals it counts as lost.",
      units("s"), positive);
    v("keep_checkpoints", keep_checkpoints,
      "At the end, only this many of the best trials keep their checkpoints; 0: all do.", at_least(0));
  }
};

}  // namespace tycho
