// The numbers of a run under the names that another system gives them.
#pragma once
#include <string>

#include "trainer/loggers/metric_record.h"
#include "trainer/metrics/step_metrics.h"
#include "trainer/recipe/log.h"

namespace tycho {

/// Returns the numbers of a step under the names, and in the units, of a system: TorchTitan's "mfu(%)" is 100
/// times `mfu`. Leaves out unknown numbers and those that the system does not have.
NamedNumbers named_numbers(const StepMetrics& metrics, const RunInfo& run, MetricNames names);

/// Returns a number of an evaluation ("eval.val.loss") under its name in the system. A callback's number
/// keeps its name.
NamedNumbers named_numbers(const std::string& name, double value, MetricNames names);

}  // namespace tycho
