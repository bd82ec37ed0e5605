// Configuration of logging.
#pragma once
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "trainer/base/duration.h"
#include "trainer/base/fields.h"

namespace tycho {

/// metrics.jsonl in the run folder: what plots, sweeps and `tycho ctl` read.
struct JsonlSinkConfig {
  static constexpr const char* kKind = "jsonl";
  static constexpr const char* kHelp = "metrics.jsonl in the run folder, one object a line.";
  template <class Visitor>
  void fields(Visitor&) {}
};

class MetricSink;
struct SinkPlace;
/// One for each kind (sink.h).
std::unique_ptr<MetricSink> make_sink(const JsonlSinkConfig& config, const SinkPlace& place);

struct SinkConfig : OneOf<JsonlSinkConfig> {
  static constexpr const char* kNamespace = "sink";
};

struct LogConfig {
  Duration every = {1, DurationUnit::kBatch};
  bool plot = false;
  std::vector<std::string> show;
  std::vector<SinkConfig> sinks = {SinkConfig{{JsonlSinkConfig{}}}};

  template <class Visitor>
  void fields(Visitor& v) {
    v("every", every, "Print and record metrics whenever this much training is done.", units("ba tok sp dur"),
      positive);
    v("plot", plot, "Plot the loss when the run is done.");
    v("show", show,
      "Additional numbers on the display, by their names in metrics.jsonl: what callbacks record, "
      "eval.NAME.loss, tflops.");
    v("sinks", sinks, "Where numbers are recorded. t.sink.jsonl is needed: plots and sweeps read it.");
  }
};

class ConfigProblems;

/// Reports sinks that are missing or listed twice.
void check(const LogConfig& log, ConfigProblems& problems);

}  // namespace tycho
