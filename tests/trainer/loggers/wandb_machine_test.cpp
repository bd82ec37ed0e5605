// Names and units of the numbers of a machine, as W&B's pages expect them.
#include "trainer/loggers/wandb_machine.h"

#include <gtest/gtest.h>

#include <map>

namespace tycho {
namespace {

std::map<std::string, std::string> by_name(const std::vector<NamedText>& items) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, text] : items) texts[name] = text;
  return texts;
}

TEST(WandbMachine, HasTheNamesAndUnitsOfTheOfficialClient) {
  constexpr int64_t kMiB = 1 << 20, kGiB = 1 << 30;
  const MachineUse before = {.cpu_busy_s = 10, .cpu_s = 100};
  const MachineUse now = {.cpu_busy_s = 35,
                          .cpu_s = 200,
                          .memory_used_bytes = 100 * kMiB,
                          .memory_free_bytes = 300 * kMiB,
                          .process_bytes = 4 * kMiB,
                          .disk_bytes = 8 * kGiB,
                          .disk_used_bytes = 2 * kGiB};
  const std::vector<GpuUse> gpus = {{}, {0.5, 30, 10, 250, 60}};
  EXPECT_EQ(by_name(wandb_machine_items(before, now, gpus)),
            (std::map<std::string, std::string>{{"cpu", "25.0"},
                                                {"memory_percent", "25.0"},
                                                {"proc.memory.availableMB", "300.0"},
                                                {"proc.memory.rssMB", "4.0"},
                                                {"proc.memory.percent", "1.0"},
                                                {"disk./.usagePercent", "25.0"},
                                                {"disk./.usageGB", "2.0"},
                                                {"gpu.1.gpu", "50.0"},
                                                {"gpu.1.memoryAllocated", "75.0"},
                                                {"gpu.1.memoryAllocatedBytes", "30.0"},
                                                {"gpu.1.temp", "60.0"},
                                                {"gpu.1.powerWatts", "250.0"}}));
  EXPECT_TRUE(wandb_machine_items({}, {}, {}).empty());
}

TEST(WandbMachine, ReadsThisMachine) {
  WandbMachine machine;
  const std::map<std::string, std::string> first = by_name(machine.sample());
  EXPECT_FALSE(first.contains("cpu"));  // a share needs two looks
  for (const char* name : {"memory_percent", "proc.memory.rssMB", "disk./.usagePercent"})
    EXPECT_TRUE(first.contains(name)) << name;
}

}  // namespace
}  // namespace tycho
