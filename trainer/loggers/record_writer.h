// A logger that may be slow or fail: the trainer's thread never waits for it (background_sink.h).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/loggers/metric_record.h"
#include "trainer/metrics/step_metrics.h"

namespace tycho {

/// One thread at a time calls it: the trainer's until start() has returned, then another one. What a call
/// throws after start() switches the logger off for the rest of the process.
class RecordWriter {
 public:
  virtual ~RecordWriter() = default;
  /// Opens what it writes to. Throws when that cannot work.
  virtual void start(const RunInfo& run) = 0;
  /// The run goes on from this step: numbers of later ones that were written before are void.
  virtual void resume(int64_t step) = 0;
  /// Records in the order of their time, at least one. Written when it returns.
  virtual void write(const std::vector<MetricRecord>& records) = 0;
  /// Whether it takes histograms and texts: the records of others have numbers alone.
  virtual bool takes_more_than_numbers() const { return false; }
  virtual bool takes_tables() const { return false; }
  /// The run ended, for the reason that people read; all that was recorded is written.
  virtual void end(const std::string& /*reason*/) {}
  /// From any thread: nobody waits any longer for the call that runs now, so that it had better throw soon.
  virtual void cancel() {}
  /// Least time between two calls of write.
  virtual double pause_s() const { return 0; }
};

}  // namespace tycho
