// Configuration of logging.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "trainer/base/duration.h"
#include "trainer/base/fields.h"

namespace tycho {

/// The system whose metric names a logger uses, so that dashboards made for it continue to work.
enum class MetricNames { kTycho, kComposer, kTorchtitan, kNanotron };
constexpr EnumNames<MetricNames, 4> enum_names(MetricNames) {
  return {{{"tycho", MetricNames::kTycho},
           {"composer", MetricNames::kComposer},
           {"torchtitan", MetricNames::kTorchtitan},
           {"nanotron", MetricNames::kNanotron}}};
}

inline constexpr const char* kNamesHelp =
    "Names of the metrics: Tycho's own, or those of Composer, TorchTitan or Nanotron.";

/// metrics.jsonl in the run folder, which plots, sweeps and `tycho ctl` read.
struct JsonlSinkConfig {
  static constexpr const char* kKind = "jsonl";
  static constexpr const char* kHelp = "metrics.jsonl in the run folder, one object a line.";
  template <class Visitor>
  void fields(Visitor&) {}
};

/// Event files for TensorBoard.
struct TensorboardSinkConfig {
  static constexpr const char* kKind = "tensorboard";
  static constexpr const char* kHelp =
      "Event files for TensorBoard: numbers, histograms and texts of callbacks, and the recipe.";
  std::string dir;
  MetricNames names = MetricNames::kTycho;
  template <class Visitor>
  void fields(Visitor& v) {
    v("dir", dir,
      "Folder for the event files of many runs, each in a subfolder with the name of the run. Empty: "
      "the run folder.");
    v("names", names, kNamesHelp);
  }
};

struct CsvSinkConfig {
  static constexpr const char* kKind = "csv";
  static constexpr const char* kHelp = "A table with a column for each metric, for spreadsheets.";
  std::string file;
  MetricNames names = MetricNames::kTycho;
  template <class Visitor>
  void fields(Visitor& v) {
    v("file", file,
      "The file; {run_name} is filled in. Two runs must not share one. Empty: metrics.csv in the run "
      "folder.");
    v("names", names, kNamesHelp);
  }
};

struct PrometheusSinkConfig {
  static constexpr const char* kKind = "prometheus";
  static constexpr const char* kHelp =
      "The newest numbers for Prometheus: in a file, which node_exporter's textfile collector reads, or on a "
      "port of this machine.";
  std::string file;
  int64_t port = 0;
  std::string host = "127.0.0.1";
  template <class Visitor>
  void fields(Visitor& v) {
    v("file", file,
      "The file, in the folder that node_exporter reads, ending in .prom; {run_name} is filled in. Two runs "
      "must not share one. Empty: none.");
    v("port", port, "Port that answers GET /metrics during the run; 0 for none.", in_range(0, 65535));
    v("host", host,
      "Numeric address to listen on. 127.0.0.1: only this machine can connect; 0.0.0.0: every machine that "
      "can reach this one.");
  }
};

struct MlflowSinkConfig {
  static constexpr const char* kKind = "mlflow";
  static constexpr const char* kHelp =
      "A run of MLflow, on a tracking server or in a folder: numbers, and the recipe as parameters.";
  std::string tracking_uri;
  std::string experiment = "Default";
  std::map<std::string, std::string> tags;
  MetricNames names = MetricNames::kTycho;
  template <class Visitor>
  void fields(Visitor& v) {
    v("tracking_uri", tracking_uri,
      "Address of the tracking server, http:// or https://, or a folder of MLflow's file store. Empty: the "
      "variable MLFLOW_TRACKING_URI, or mlruns/ in the run folder.");
    v("experiment", experiment, "Experiment that the run belongs to; it is created if it does not exist.");
    v("tags", tags, "Tags of the run.");
    v("names", names, kNamesHelp);
  }
};

struct WandbSinkConfig {
  static constexpr const char* kKind = "wandb";
  static constexpr const char* kHelp =
      "A run of Weights & Biases: sent while it runs, or written to a folder that `wandb sync` uploads.";
  std::string project, entity, group;
  std::vector<std::string> tags;
  std::string dir;
  std::string mode;
  MetricNames names = MetricNames::kTycho;
  template <class Visitor>
  void fields(Visitor& v) {
    v("project", project, "Project that the run belongs to.", required);
    v("entity", entity, "User or team that owns the project. Empty: WANDB_ENTITY, or the owner of the key.");
    v("group", group, "Group that the run belongs to; empty for none.");
    v("tags", tags, "Tags of the run.");
    v("dir", dir, "Folder with a folder wandb/ for the files of many runs. Empty: the run folder.");
    v("mode", mode,
      "\"online\": the run sends its numbers, with the key in WANDB_API_KEY or ~/.netrc. \"offline\": it "
      "sends nothing. Empty: the variable WANDB_MODE decides, or else offline.");
    v("names", names, kNamesHelp);
  }
};

struct SinkConfig : OneOf<JsonlSinkConfig, TensorboardSinkConfig, CsvSinkConfig, PrometheusSinkConfig,
                          MlflowSinkConfig, WandbSinkConfig> {
  static constexpr const char* kNamespace = "log";
};

struct LogConfig {
  Duration every = {1, DurationUnit::kBatch};
  bool plot = false;
  std::vector<std::string> show;
  std::optional<Duration> loss_by_position;
  std::vector<SinkConfig> sinks = {SinkConfig{{JsonlSinkConfig{}}}};

  template <class Visitor>
  void fields(Visitor& v) {
    v("every", every, "Print and record metrics whenever this much training is done.", units("ba tok sp dur"),
      positive);
    v("plot", plot, "Plot the loss when the run is done.");
    v("show", show,
      "Additional numbers on the display, by their names in metrics.jsonl: what callbacks record, "
      "eval.NAME.loss, tflops.");
    v("loss_by_position", loss_by_position,
      "Record the mean loss and perplexity at each position of the sequence, in the batch of a step, "
      "whenever "
      "this much training is done: in loss_by_position.jsonl in the run folder, and as a table in W&B and "
      "MLflow.",
      units("ba tok sp dur"), positive);
    v("sinks", sinks, "Where numbers are recorded. t.log.jsonl is needed: plots and sweeps read it.");
  }
};

class ConfigProblems;

/// Returns what is wrong with MLflow's tracking URI and what to write instead; "" when it is right.
std::string tracking_uri_problem(const std::string& uri);

/// Reports missing or duplicate sinks, and file names that cannot be right.
void check(const LogConfig& log, ConfigProblems& problems);

}  // namespace tycho
