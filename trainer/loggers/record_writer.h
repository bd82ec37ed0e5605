// A logger that may be slow or fail: the trainer's thread never waits for it (background_sink.h).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/loggers/metric_record.h"
#include "trainer/metrics/step_metrics.h"

namespace tycho {

/// Writes records to a logger. Used by one thread at a time: the trainer's until start() has returned, then
/// another one. An exception after start() switches the logger off for the rest of the process.
class RecordWriter {
 public:
  virtual ~RecordWriter() = default;
  /// Opens the target. Throws when that fails.
  virtual void start(const RunInfo& run) = 0;
  /// Returns true if an earlier start could not write all that the run has, or if one of `more` checkpoints
  /// is not written. Called before start(), in a start that has nothing to train. Throws when that cannot be
  /// found out.
  virtual bool is_behind(const std::vector<StoredCheckpoint>& /*more*/) { return false; }
  /// Resumes from this step: numbers of later steps that were written before are void.
  virtual void resume(int64_t step) = 0;
  /// Writes records, at least one, in the order of their time. They are written when this returns.
  virtual void write(const std::vector<MetricRecord>& records) = 0;
  /// Returns true when it accepts histograms and texts; records for other writers have only numbers.
  virtual bool takes_more_than_numbers() const { return false; }
  virtual bool takes_tables() const { return false; }
  /// Returns true when it accepts alerts and checkpoints.
  virtual bool takes_events() const { return false; }
  /// Called at the end of the run, after all records are written. `reason` is for display.
  virtual void end(const std::string& /*reason*/) {}
  /// Tells the running call that nobody waits for it any longer, so that it throws soon. Callable from any
  /// thread.
  virtual void cancel() {}
  /// Returns a warning that users are to see now, once; "" for none. The logger goes on. Callable from any
  /// thread.
  virtual std::string news() { return ""; }
  /// Called when no record has come for tick_s(), again and again; never when that is 0.
  virtual void tick() {}
  virtual double tick_s() const { return 0; }
  /// Returns the minimum time between two calls of write.
  virtual double pause_s() const { return 0; }
};

}  // namespace tycho
