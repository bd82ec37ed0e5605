// What metrics.jsonl has of steps that a logger was not told of, or that were lost with a killed process.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/loggers/metric_record.h"
#include "trainer/metrics/config.h"
#include "trainer/metrics/step_metrics.h"

namespace tycho {

/// As many as wait for a logger at most.
inline constexpr size_t kMostRecorded = 10'000;

/// The numbers of steps [first, last] in the metrics.jsonl of a run folder, in the order of the steps: one
/// record for each line, and of lines with the same names the newest. Of more than kMostRecorded, those of
/// the last steps. Lines that are torn or not of a run are left out; a file that is not there has none.
std::vector<MetricRecord> recorded_numbers(const std::string& run_dir, int64_t first, int64_t last,
                                           const RunInfo& run, MetricNames names);

}  // namespace tycho
