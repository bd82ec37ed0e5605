// The numbers of a run under the names that another system gives them.
#pragma once
#include <string>

#include "trainer/loggers/metric_record.h"
#include "trainer/metrics/config.h"
#include "trainer/metrics/step_metrics.h"

namespace tycho {

/// The numbers of a step, in the units of that system too: TorchTitan's "mfu(%)" is 100 times `mfu`. Numbers
/// that are not known are left out, as are those that the system does not have.
NamedNumbers named_numbers(const StepMetrics& metrics, const RunInfo& run, MetricNames names);

/// A number of an evaluation ("eval.val.loss") or of a callback, which keeps its name.
NamedNumbers named_numbers(const std::string& name, double value, MetricNames names);

}  // namespace tycho
