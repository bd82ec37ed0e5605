// Measures how fast training data can be read, without training.
#pragma once
#include <atomic>
#include <cstdint>

#include "trainer/data/loader/loader.h"
#include "trainer/data/rows/batch.h"
#include "trainer/recipe/data.h"

namespace tycho {

struct DataBenchReport {
  int64_t batches = 0, samples = 0, tokens = 0;
  double open_s = 0;     // until the first batch was ready
  double seconds = 0;    // from then to the last batch
  double wait_s = 0;     // time in `seconds` spent waiting for batches
  double cpu_s = 0;      // all threads of the process, in `seconds`
  double longest_s = 0;  // longest wait for a batch, except the first
  FetchCounts fetched;
};

/// Reads an epoch, or `most_batches` of it (0: all), in its order, through a loader like training's. Ends
/// early when `stop` is set. `shape` is that of the rank to measure. Throws like make_loader; kUnusable when
/// there are fewer than two batches.
DataBenchReport bench_data(const DataConfig& data, const LoaderShape& shape, int64_t most_batches,
                           const std::atomic<int>& stop);

}  // namespace tycho
