// A sink whose writer works on a thread of its own, so that a slow or broken one neither delays nor ends a
// run.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "trainer/loggers/record_writer.h"
#include "trainer/loggers/sink.h"
#include "trainer/metrics/config.h"

namespace tycho {

struct BackgroundLimits {
  size_t records = 10000;  // that wait; more are dropped and counted
  double flush_s = 10;     // that the end of a run waits for them
};

/// `kind` is the logger's name for people, "t.log.csv". Writes the numbers of steps under `names`. After a
/// failure the sink throws once, with the cause, and does nothing from then on; so it does when it first
/// drops records, and at the end when it dropped some.
std::unique_ptr<MetricSink> make_background_sink(std::string kind, MetricNames names,
                                                 std::unique_ptr<RecordWriter> writer,
                                                 BackgroundLimits limits = {});

}  // namespace tycho
