// What the texts of /proc say, and what this machine's say.
#include "trainer/metrics/machine_use.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace tycho {
namespace {

TEST(MachineUse, ReadsTheTextsOfLinux) {
  const double tick_s = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  const MachineUse use = parse_machine_use(
      "cpu  100 10 50 800 40 1 2 3 30 5\ncpu0 1 1 1 1 1 1 1 1 1 1\n",
      "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    400 kB\n", "500 20 10 1 0 90 0\n");
  EXPECT_DOUBLE_EQ(use.cpu_s, 1006 * tick_s);  // guests are part of user
  EXPECT_DOUBLE_EQ(use.cpu_busy_s, 166 * tick_s);
  EXPECT_EQ(use.memory_used_bytes, 600 * 1024);
  EXPECT_EQ(use.memory_free_bytes, 400 * 1024);
  EXPECT_EQ(use.process_bytes, 20 * ::sysconf(_SC_PAGESIZE));
}

TEST(MachineUse, WhatIsNotThereIsMinusOne) {
  const MachineUse use = parse_machine_use("", "MemTotal: much\n", "x");
  EXPECT_EQ(use.cpu_s, -1);
  EXPECT_EQ(use.cpu_busy_s, -1);
  EXPECT_EQ(use.memory_used_bytes, -1);
  EXPECT_EQ(use.process_bytes, -1);
  EXPECT_EQ(machine_use("/nowhere").disk_free_bytes, -1);
}

TEST(MachineUse, KnowsThisMachine) {
  const MachineUse use = machine_use("/");
  EXPECT_GT(use.cpu_s, use.cpu_busy_s);
  EXPECT_GT(use.cpu_busy_s, 0);
  EXPECT_GT(use.memory_used_bytes, 0);
  EXPECT_GT(use.memory_free_bytes, 0);
  EXPECT_GT(use.process_bytes, 1 << 20);
  EXPECT_GE(use.disk_free_bytes, 0);
}

}  // namespace
}  // namespace tycho
