// A sink whose writer works on a thread of its own, so that a slow or broken one neither delays nor ends a
// run.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "trainer/loggers/record_writer.h"
#include "trainer/loggers/sink.h"
#include "trainer/recipe/log.h"

namespace tycho {

struct BackgroundLimits {
  size_t records = 10000;  // records that wait; further ones are dropped and counted
  double flush_s = 10;     // how long the end of a run waits for them
};

/// Makes a sink that passes records to a writer on a thread of its own. `kind` is the logger's name for
/// display, "t.log.csv". Numbers of steps get the names of `names`. After a failure the sink throws once,
/// with the cause, and does nothing from then on. It also throws when it first drops records, and at the end
/// when it has dropped some.
std::unique_ptr<MetricSink> make_background_sink(std::string kind, MetricNames names,
                                                 std::unique_ptr<RecordWriter> writer,
                                                 BackgroundLimits limits = {});

}  // namespace tycho
