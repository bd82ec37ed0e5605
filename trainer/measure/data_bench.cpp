// The first batch is not counted: it opens the data and fills the queue.
#include "trainer/measure/data_bench.h"

#include <time.h>

#include <algorithm>
#include <chrono>

#include "trainer/base/error.h"
#include "trainer/base/seconds_since.h"

namespace tycho {
namespace {

double process_cpu_s() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

DataBenchReport bench_data(const DataConfig& data, const LoaderShape& shape, int64_t most_batches,
                           const std::atomic<int>& stop) {
  DataBenchReport report;
  const auto opened = std::chrono::steady_clock::now();
  const auto loader = make_loader(data, shape, {}, {});
  loader->next();
  report.open_s = seconds_since(opened);
  int64_t batches = loader->samples_per_epoch() / shape.global_sequences;
  if (most_batches > 0) batches = std::min(batches, most_batches);
  if (batches < 2)
    fail(ExitCode::kUnusable,
         "[bench] {} has one batch, two are needed to measure; use a smaller global_batch", data.place());
  const auto start = std::chrono::steady_clock::now();
  const double cpu_start = process_cpu_s();
  for (int64_t i = 1; i < batches && stop == 0; ++i) {
    const Batch batch = loader->next();
    ++report.batches;
    report.samples += batch.num_sequences;
    report.tokens += batch.num_sequences * batch.seq_len;
    report.wait_s += batch.wait_s;
    report.longest_s = std::max(report.longest_s, batch.wait_s);
  }
  report.seconds = seconds_since(start);
  report.cpu_s = process_cpu_s() - cpu_start;
  report.fetched = loader->fetch_counts();
  return report;
}

}  // namespace tycho
