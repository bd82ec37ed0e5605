// What is free of a machine's memory, read from files as Linux has them.
#include "trainer/plan/memory_limits.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "tests/trainer/base/temp_dir.h"

namespace tycho {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

class MemoryLimitsTest : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(dir_ / path).parent_path());
    std::ofstream(dir_ / path) << text;
  }
  std::map<std::string, int64_t> limits() {
    std::map<std::string, int64_t> free;
    for (const MemoryLimit& limit : host_memory_limits(dir_.path())) free[limit.who] = limit.free_bytes;
    return free;
  }
  using Free = std::map<std::string, int64_t>;
  TempDir dir_;
};

TEST_F(MemoryLimitsTest, WhatIsNotKnownLimitsNothing) {
  EXPECT_EQ(limits(), Free());
  write("proc/meminfo", "MemTotal: 100 kB\n");
  write("proc/self/cgroup", "nonsense\n1:name=systemd:/x\n");
  write("proc/self/limits", "Max address space         unlimited            unlimited            bytes\n");
  write("proc/self/status", "VmSize:\t  1024 kB\nVmData:\t  512 kB\n");
  EXPECT_EQ(limits(), Free());
}

TEST_F(MemoryLimitsTest, TheMachineHasWhatIsAvailableAndSwap) {
  write("proc/meminfo",
        "MemTotal:  8388608 kB\nMemFree: 1 kB\nMemAvailable:    4194304 kB\nSwapFree:  1048576 kB\n");
  EXPECT_EQ(limits(), (Free{{"this machine", 5 * kGiB}}));
}

TEST_F(MemoryLimitsTest, EveryCgroupAroundTheProcessCountsAndItsCacheIsFree) {
  write("proc/self/cgroup", "0::/slurm/job_99\n");
  write("sys/fs/cgroup/slurm/job_99/memory.max", "4294967296\n");
  write("sys/fs/cgroup/slurm/job_99/memory.current", "3221225472\n");
  write("sys/fs/cgroup/slurm/job_99/memory.stat",
        "anon 1\ninactive_file 1073741824\nactive_file 1073741824\nfile 7\n");
  write("sys/fs/cgroup/slurm/memory.max", "max\n");
  write("sys/fs/cgroup/slurm/memory.current", "1\n");
  write("sys/fs/cgroup/memory.max", "1073741824\n");
  write("sys/fs/cgroup/memory.current", "2147483648\n");
  EXPECT_EQ(limits(), (Free{{"the cgroup /slurm/job_99", 3 * kGiB}, {"the cgroup /", 0}}));
}

TEST_F(MemoryLimitsTest, TheHostHasNoMoreThanItsCgroup) {
  EXPECT_EQ(host_size(dir_.path()).memory_bytes, 0) << "nothing is known";
  write("proc/meminfo", "MemTotal:  8388608 kB\nMemAvailable:    4194304 kB\n");
  EXPECT_EQ(host_size(dir_.path()).memory_bytes, 8 * kGiB) << "used or not";
  write("proc/self/cgroup", "0::/job\n");
  write("sys/fs/cgroup/job/memory.max", "3221225472\n");
  write("sys/fs/cgroup/job/memory.current", "1073741824\n");
  EXPECT_EQ(host_size(dir_.path()).memory_bytes, 3 * kGiB);
}

TEST_F(MemoryLimitsTest, CgroupsOfTheFirstVersionAreReadToo) {
  write("proc/self/cgroup", "12:cpu,cpuacct:/a\n9:memory:/docker/of-the-host\n0::/\n");
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
  write("sys/fs/cgroup/memory/memory.usage_in_bytes", "1073741824\n");
  write("sys/fs/cgroup/memory/memory.stat", "inactive_file 5\ntotal_inactive_file 536870912\n");
  EXPECT_EQ(limits(), (Free{{"the cgroup /", kGiB + kGiB / 2}}));
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(limits(), Free());
}

TEST_F(MemoryLimitsTest, UlimitsLeaveWhatTheProcessHasNotTaken) {
  write("proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units\n"
        "Max data size             2147483648           unlimited            bytes\n"
        "Max address space         4294967296           unlimited            bytes\n");
  write("proc/self/status", "VmPeak:\t 9 kB\nVmSize:\t 1048576 kB\nVmData:\t 4194304 kB\n");
  EXPECT_EQ(limits(), (Free{{"ulimit -v", 3 * kGiB}, {"ulimit -d", 0}}));
}

TEST_F(MemoryLimitsTest, ThisMachineHasSomething) {
  const std::vector<MemoryLimit> here = host_memory_limits();
  ASSERT_FALSE(here.empty());
  EXPECT_GT(here.front().free_bytes, 0);
}

TEST(MemoryShortage, NamesTheTightestLimit) {
  const std::vector<MemoryLimit> limits = {{"this machine", 8 * kGiB},
                                           {"the cgroup /job", 4 * kGiB},
                                           {"ulimit -v", 3 * kGiB, /*is_shared=*/false}};
  EXPECT_EQ(memory_shortage(3 * kGiB, 1, limits), "");
  EXPECT_EQ(memory_shortage(3 * kGiB + 1, 1, limits),
            "takes 3.22 GB, and ulimit -v leaves 3.22 GB to a process");
  EXPECT_EQ(memory_shortage(5 * kGiB, 1, {limits[0], limits[1]}),
            "takes 5.37 GB, and the cgroup /job has 4.29 GB free");
  EXPECT_EQ(memory_shortage(2 * kGiB, 2, limits), "");
  EXPECT_EQ(memory_shortage(2 * kGiB, 3, limits),
            "takes 2.15 GB in each of 3 ranks here, and the cgroup /job has 4.29 GB free");
  EXPECT_EQ(memory_shortage(int64_t{8'500'000'000'000}, 1, {}), "");
}

TEST(MemoryShortage, LibTorchCountsWhereALimitKills) {
  constexpr int64_t kMiB = 1 << 20;
  const std::vector<MemoryLimit> limits = {{"the cgroup /job", 240 * kMiB},
                                           {"ulimit -v", 100 * kMiB, /*is_shared=*/false}};
  EXPECT_EQ(memory_shortage(90 * kMiB, 1, limits, 150 * kMiB), "");
  EXPECT_EQ(memory_shortage(91 * kMiB, 1, limits, 150 * kMiB),
            "takes 95.4 MB and 157 MB for LibTorch itself, and the cgroup /job has 252 MB free");
  EXPECT_EQ(memory_shortage(101 * kMiB, 1, limits, 150 * kMiB),
            "takes 106 MB, and ulimit -v leaves 105 MB to a process");
}

TEST_F(MemoryLimitsTest, WhatLibTorchHasTakenIsNotToCome) {
  EXPECT_EQ(libtorch_bytes_to_come(dir_.path()), kLibTorchBytes);
  write("proc/self/status", "VmSize:\t  1024 kB\nRssAnon:\t  51200 kB\n");
  EXPECT_EQ(libtorch_bytes_to_come(dir_.path()), kLibTorchBytes - (50 << 20));
  write("proc/self/status", "RssAnon:\t  5120000 kB\n");
  EXPECT_EQ(libtorch_bytes_to_come(dir_.path()), 0);
}

}  // namespace
}  // namespace tycho
