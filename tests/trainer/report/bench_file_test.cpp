// Benchmarks on the page of runs: what each prints as JSON, and files that are none of it.
#include "trainer/report/bench_file.h"

#include <gtest/gtest.h>

#include "tests/trainer/metrics/fixtures.h"
#include "trainer/base/error.h"
#include "trainer/report/run_page.h"

namespace tycho {
namespace {

const char* const kComm = R"({"ranks": 4, "timings": [
  {"verb": "all_reduce", "axis": "all", "group_size": 4, "num_bytes": 1024, "count": 256,
   "out_of_place": null, "in_place": {"seconds": 1e-5, "alg_bytes_per_s": 1e8, "bus_bytes_per_s": 1.5e8, "num_wrong": 0}},
  {"verb": "all_reduce", "axis": "all", "group_size": 4, "num_bytes": 4096, "count": 1024,
   "out_of_place": null, "in_place": {"seconds": 2e-5, "alg_bytes_per_s": 2e8, "bus_bytes_per_s": 3e8, "num_wrong": 0}},
  {"verb": "send_recv", "axis": "all", "group_size": 4, "num_bytes": 4096, "count": 1024,
   "out_of_place": {"seconds": 4e-6, "alg_bytes_per_s": 1e9, "bus_bytes_per_s": 1e9, "num_wrong": 0}, "in_place": null},
  {"verb": "barrier", "axis": "all", "group_size": 4, "num_bytes": 0, "count": 0,
   "out_of_place": {"seconds": 3e-5, "alg_bytes_per_s": 0, "bus_bytes_per_s": 0, "num_wrong": 0}, "in_place": null}]})";
const char* const kStorage = R"({"folder": "/data <x>", "file_system": "ext4", "free_bytes": 5, "advice": "",
  "facts": [{"name": "rename", "support": "yes", "found": "replaces a file", "advice": ""}],
  "rates": [{"what": "write 1 file", "num_bytes": 100, "seconds": 1, "bytes_per_s": 367e6}], "fsync_s": 0.004, "files_per_s": 6419})";
const char* const kStep =
    R"({"device": "cpu", "num_ranks": 1, "num_params": 10, "num_steps": 5, "tokens_per_step": 4, "fastest_s": 0.1,
  "median_s": 0.2, "slowest_s": 0.3, "data_wait_s": 0, "comm_wait_s": null, "comm_s": null, "tokens_per_s": 20, "tflops": 1, "mfu": null,
  "memory_bytes": 1000, "parts": [{"part": "backward", "seconds": 0.15, "share": 0.75}]})";
const char* const kData =
    R"({"batches": 3, "samples": 6, "seq_len": 8, "tokens": 48, "open_s": 0.5, "seconds": 1, "cpu_s": 1, "wait_s": 0,
  "longest_wait_s": 0.01, "tokens_per_s": 48, "tokens_per_cpu_s": 24, "shards_opened": 1, "shards_fetched": 0, "fetched_bytes": 0})";

BenchFile read(const std::string& text) {
  const TempDir dir;
  write_text(dir / "bench.json", text);
  return read_bench_file(dir / "bench.json");
}

TEST(BenchFile, OfCollectivesHasALineForEachVerb) {
  const BenchFile bench = read(kComm);
  EXPECT_TRUE(bench.title.starts_with("Collectives of 4 ranks (")) << bench.title;
  ASSERT_EQ(bench.plots.size(), 1U);
  ASSERT_EQ(bench.plots[0].lines.size(), 2U);  // a barrier has none
  EXPECT_EQ(bench.plots[0].lines[0].bytes, (std::vector<double>{1024, 4096}));
  EXPECT_EQ(bench.plots[0].lines[0].values, (std::vector<double>{0.15, 0.3}));
  EXPECT_EQ(bench.plots[0].lines[1].name, "send_recv");
  EXPECT_EQ(bench.table.size(), 5U);
  EXPECT_EQ(bench.table[2],
            (std::vector<std::string>{"all_reduce", "all", "4", "4.10 KB", "0.02 ms", "300 MB/s", "0"}));
}

TEST(BenchFile, OfTheOthersHasTheirNumbers) {
  const BenchFile storage = read(kStorage), step = read(kStep), data = read(kData);
  EXPECT_EQ(storage.plots.at(0).bars, (std::vector<std::pair<std::string, double>>{{"write 1 file", 367}}));
  EXPECT_EQ(storage.table[1], (std::vector<std::string>{"rename", "yes", "replaces a file"}));
  EXPECT_EQ(step.plots.at(0).bars.at(0).first, "backward");
  EXPECT_EQ(step.table[4], (std::vector<std::string>{"MFU", "unknown"}));
  EXPECT_TRUE(data.plots.empty());
  EXPECT_EQ(data.table[1], (std::vector<std::string>{"tokens/s", "48"}));
  const std::string page = run_page({}, {read(kComm), storage, step, data});
  EXPECT_NE(page.find("<h1>Benchmarks</h1>"), std::string::npos);
  EXPECT_NE(page.find("all_reduce of 4.10 KB: 0.3 GB/s"), std::string::npos);
  EXPECT_NE(page.find("write 1 file: 367 MB/s"), std::string::npos);
  EXPECT_EQ(page.find("<x>"), std::string::npos);  // texts are escaped
  EXPECT_EQ(page.find("nan"), std::string::npos);
}

TEST(BenchFile, SaysWhichFileIsNoBenchmark) {
  for (const char* text :
       {"{}", "[1]", "3", R"({"timings": 4})", R"({"ranks": "x", "timings": []})", R"({"rates": []})"}) {
    try {
      read(text);
      ADD_FAILURE() << "was taken: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUnusable);
      EXPECT_NE(std::string(error.what()).find("bench.json: expected what tycho bench comm"),
                std::string::npos)
          << error.what();
    }
  }
  EXPECT_THROW(read("{"), Error);
  EXPECT_THROW(read_bench_file("/nowhere.json"), Error);
}

}  // namespace
}  // namespace tycho
