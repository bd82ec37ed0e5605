// What a bench of the loader counts; how fast it is depends on the machine.
#include "trainer/measure/data_bench.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/trainer/data/data_testing.h"
#include "trainer/data/mds/mds_format.h"
#include "trainer/data/mds/mds_writer.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::TempDir;

class DataBenchTest : public ::testing::Test {
 protected:
  DataBenchTest() {
    std::filesystem::create_directories(temp_ / "d/train");
    MdsWriter writer(real_files(), temp_ / "d/train",
                     {.columns = {{"tokens", "ndarray:int32"}}, .size_limit = 500});
    for (int32_t row = 0; row < 21; ++row) {
      std::vector<int32_t> tokens(16);
      std::iota(tokens.begin(), tokens.end(), row);
      writer.write({encode_mds_array(tokens.data(), 16, sizeof(int32_t))});
    }
    writer.finish();
  }
  DataBenchReport run(const MdsConfig& config, int64_t most_batches = 0) const {
    return bench_data({{config}}, {.seq_len = 16, .global_sequences = 4, .num_ranks = 2, .vocab_size = 100},
                      most_batches, stop_);
  }
  TempDir temp_;
  std::atomic<int> stop_ = 0;
};

TEST_F(DataBenchTest, CountsAnEpochButForTheFirstBatch) {
  const DataBenchReport report = run({.local_dir = temp_ / "d"});
  EXPECT_EQ(report.batches, 4);  // of 5
  EXPECT_EQ(report.samples, 8);  // of this rank
  EXPECT_EQ(report.tokens, 8 * 16);
  EXPECT_GT(report.seconds, 0);
  EXPECT_GE(report.seconds, report.wait_s);
  EXPECT_GE(report.wait_s, report.longest_s);
  EXPECT_EQ(report.fetched.opened, 0) << "nothing is remote";
  EXPECT_EQ(run({.local_dir = temp_ / "d"}, 3).batches, 2);
}

TEST_F(DataBenchTest, CountsWhatIsFetchedAndWhatTheCacheHad) {
  const MdsConfig remote = {.local_dir = temp_ / "cache", .remote = temp_ / "d"};
  const DataBenchReport first = run(remote);
  EXPECT_GT(first.fetched.fetched, 1);
  EXPECT_GT(first.fetched.fetched_bytes, 0);
  const DataBenchReport again = run(remote);
  EXPECT_EQ(again.fetched.fetched, 0);
  EXPECT_GT(again.fetched.opened, 0);
}

TEST_F(DataBenchTest, EndsWhenItIsStopped) {
  stop_ = 2;
  EXPECT_EQ(run({.local_dir = temp_ / "d"}).batches, 0);
}

TEST_F(DataBenchTest, OneBatchIsTooFew) {
  expect_error(ExitCode::kUnusable, {"has one batch"}, [&] { run({.local_dir = temp_ / "d"}, 1); });
}

}  // namespace
}  // namespace tycho
