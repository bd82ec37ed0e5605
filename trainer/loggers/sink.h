// Where the numbers of a run go, beside the display: one sink for each entry of log.sinks. A new kind is its
// config in recipe/log.h and one source with its make_sink. Torch-free.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"
#include "trainer/loggers/metric_record.h"
#include "trainer/metrics/named_table.h"
#include "trainer/metrics/reporter.h"
#include "trainer/metrics/step_metrics.h"
#include "trainer/recipe/log.h"

namespace tycho {

/// A target of a run's numbers. Called by the trainer's thread on rank 0 and must not block it: a slow kind
/// is a RecordWriter behind make_background_sink. An exception is shown as a warning, and the run continues.
class MetricSink {
 public:
  virtual ~MetricSink() = default;
  /// Opens the target. Throws when that fails: on the first start of a run this ends it before its first
  /// step. When a run is started again, this is called before its first number, and the run continues without
  /// the sink.
  virtual void run_start(const RunInfo&) {}
  /// Resumes from this step: numbers of later steps from an earlier attempt are void.
  virtual void resume(int64_t /*step*/) {}
  /// Adds the numbers of a step of log.every.
  virtual void step(const StepMetrics& metrics) = 0;
  /// Adds a number of an evaluation ("eval.loss") or of a callback.
  virtual void metric(int64_t step, const std::string& name, double value) = 0;
  /// Add a histogram, a text or a table.
  virtual void histogram(int64_t /*step*/, const NamedHistogram&) {}
  virtual void text(int64_t /*step*/, const NamedText&) {}
  virtual void table(int64_t /*step*/, const NamedTable&) {}
  /// Adds an alert for people: its name is the title.
  virtual void alert(int64_t /*step*/, const NamedText&) {}
  /// Adds the place of a checkpoint, once it is whole there.
  virtual void checkpoint(const StoredCheckpoint&) {}
  /// Returns true if an earlier start could not give the target all that this run has, or if it lacks one of
  /// `more` checkpoints. Called before run_start(), in a start that has nothing to train.
  virtual bool is_behind(const std::vector<StoredCheckpoint>& /*more*/) { return false; }
  /// The last call, also when the run stopped early. `reason` is for display.
  virtual void finish(const std::string& /*reason*/) {}
};

/// The run that a sink belongs to.
struct SinkTarget {
  std::string run_dir;                             // exists
  int64_t attempt = 1;                             // number of this process among those of the folder
  FileOps& files;                                  // must outlive the sink; callable from any thread
  std::vector<StoredCheckpoint> checkpoints = {};  // of earlier starts, where the run keeps its own
};

/// Makes the sink of a kind; each is defined in a source of its own. Throws Error when it cannot work at all.
std::unique_ptr<MetricSink> make_sink(const JsonlSinkConfig& config, const SinkTarget& place);
std::unique_ptr<MetricSink> make_sink(const TensorboardSinkConfig& config, const SinkTarget& place);
std::unique_ptr<MetricSink> make_sink(const CsvSinkConfig& config, const SinkTarget& place);
std::unique_ptr<MetricSink> make_sink(const PrometheusSinkConfig& config, const SinkTarget& place);
std::unique_ptr<MetricSink> make_sink(const MlflowSinkConfig& config, const SinkTarget& place);
std::unique_ptr<MetricSink> make_sink(const WandbSinkConfig& config, const SinkTarget& place);

/// Makes a reporter for each sink, so that a failing one does not withhold numbers from the others. Throws
/// Error (kStorage) when a file cannot be opened.
std::vector<std::unique_ptr<Reporter>> make_sink_reporters(
    const std::vector<SinkConfig>& sinks, const std::string& run_dir, FileOps& files = real_files(),
    const std::vector<StoredCheckpoint>& checkpoints = std::vector<StoredCheckpoint>());

/// Combines all reporters of a run: its sinks, its folder, `others`, and the display, which may be null.
/// `checkpoints` are those of earlier starts.
std::unique_ptr<Reporter> make_run_reporter(
    const std::string& run_dir, const LogConfig& log, std::unique_ptr<Reporter> display,
    std::vector<std::unique_ptr<Reporter>> others = {}, FileOps& files = real_files(),
    const std::vector<StoredCheckpoint>& checkpoints = std::vector<StoredCheckpoint>());

}  // namespace tycho
