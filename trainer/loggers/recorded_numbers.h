// What metrics.jsonl has of steps that a logger was not told of, or that were lost with a killed process.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/loggers/metric_record.h"
#include "trainer/metrics/step_metrics.h"
#include "trainer/recipe/log.h"

namespace tycho {

/// Maximum number of records, the same as the number that may wait for a logger.
inline constexpr size_t kMostRecorded = 10'000;

/// Reads the numbers of steps [first, last] from the metrics.jsonl of a run folder, in the order of steps:
/// one record for each line, and the newest of lines with the same names. Beyond kMostRecorded, keeps those
/// of the last steps. Skips lines that are torn or not of a run; returns none when the file does not exist.
std::vector<MetricRecord> recorded_numbers(const std::string& run_dir, int64_t first, int64_t last,
                                           const RunInfo& run, MetricNames names);

}  // namespace tycho
