// A folder is measured and left as it was; what cannot be measured is an error.
#include "trainer/measure/storage_bench.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/checkpoint/checkpoint_fixture.h"

namespace fs = std::filesystem;

namespace tycho {
namespace {

const std::atomic<int> kNoStop = 0;

TEST(StorageBench, MeasuresAndLeavesNothing) {
  const TempDir dir;
  std::ofstream(dir.path() + "/mine") << "kept";
  const StorageReport report =
      bench_storage({.folder = dir.path(), .file_bytes = (3 << 20) + 5, .num_files = 3}, kNoStop);
  ASSERT_EQ(report.rates.size(), 4u);
  EXPECT_EQ(report.rates[0].what, "write 1 file");
  EXPECT_EQ(report.rates[3].what, "read 3 files at once");
  EXPECT_EQ(report.rates[3].num_bytes, 3 * ((3 << 20) + 5));
  for (const StorageRate& rate : report.rates) EXPECT_GT(rate.bytes_per_s(), 0) << rate.what;
  EXPECT_GT(report.files_per_s, 0);
  EXPECT_GT(report.fsync_s, 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 1);
}

TEST(StorageBench, ALocalFileSystemDoesWhatRunFoldersNeed) {
  const TempDir dir;
  const std::vector<StorageFact> facts = storage_facts(dir.path());
  EXPECT_EQ(facts.size(), 8u);
  for (const StorageFact& fact : facts) {
    const bool is_needed = fact.name == "rename" || fact.name == "hard links" ||
                           fact.name == "exclusive create" || fact.name == "fsync";
    EXPECT_TRUE(!is_needed || fact.support == Support::kYes) << fact.name << ": " << fact.found;
    EXPECT_FALSE(fact.found.empty()) << fact.name;
  }
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(StorageBench, KnowsKindsOfFileSystems) {
  EXPECT_EQ(file_system_name("/proc"), "0x9fa0");
  EXPECT_EQ(file_system_name("/nowhere"), "unknown");
  EXPECT_NE(file_system_advice("lustre").find("lfs setstripe"), std::string::npos);
  EXPECT_EQ(file_system_advice("ext4"), "");
}

TEST(StorageBench, SaysWhatCannotBeMeasured) {
  const TempDir dir;
  const auto code_of = [&](const StorageBenchRequest& request, const std::atomic<int>& stop) {
    return failure_of([&] { bench_storage(request, stop); }).code;
  };
  EXPECT_EQ(code_of({.folder = dir.path() + "/none"}, kNoStop), ExitCode::kUnusable);
  EXPECT_EQ(code_of({.folder = dir.path(), .file_bytes = 0}, kNoStop), ExitCode::kUsage);
  EXPECT_EQ(code_of({.folder = dir.path(), .file_bytes = int64_t{1} << 60}, kNoStop), ExitCode::kStorage);
  const std::atomic<int> stop = 15;
  EXPECT_EQ(static_cast<int>(code_of({.folder = dir.path()}, stop)), 143);
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

}  // namespace
}  // namespace tycho
