// How fast training data can be read, without training.
#pragma once
#include <atomic>
#include <cstdint>

#include "trainer/data/batch.h"
#include "trainer/data/config.h"
#include "trainer/data/loader/loader.h"

namespace tycho {

struct DataBenchReport {
  int64_t batches = 0, samples = 0, tokens = 0;
  double open_s = 0;     // until the first batch was there
  double seconds = 0;    // from there to the last batch
  double wait_s = 0;     // of those, how long batches were waited for
  double cpu_s = 0;      // of all threads of the process, in `seconds`
  double longest_s = 0;  // the longest wait for a batch, the first left out
  FetchCounts fetched;
};

/// Reads an epoch, or `most_batches` of it (0: all), in its order, through a loader as training has one. Ends
/// early when `stop` is set. `shape`: of the rank that it stands for. Throws as make_loader does; kUnusable
/// when there are not two batches.
DataBenchReport bench_data(const DataConfig& data, const LoaderShape& shape, int64_t most_batches,
                           const std::atomic<int>& stop);

}  // namespace tycho
