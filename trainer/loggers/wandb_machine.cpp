// Turns counters into shares.
#include "trainer/loggers/wandb_machine.h"

#include <fmt/format.h>

#include "trainer/base/json.h"

namespace tycho {
namespace {

constexpr double kPercent = 100, kMiB = 1 << 20, kGiB = 1 << 30;

/// Returns the share of a part in a whole, in percent; -1 where one is unknown.
double percent(double part, double whole) { return part < 0 || whole <= 0 ? -1 : kPercent * part / whole; }

class Items {
 public:
  /// Adds a number, unless it is unknown.
  void add(std::string name, double value) {
    if (value >= 0) all.push_back({std::move(name), Json(value).dump()});
  }
  std::vector<NamedText> all;
};

void add_gpu(Items& items, size_t number, const GpuUse& gpu) {
  const auto name = [number](const char* what) { return fmt::format("gpu.{}.{}", number, what); };
  const auto used = static_cast<double>(gpu.memory_used_bytes);
  items.add(name("gpu"), gpu.busy_share < 0 ? -1 : kPercent * gpu.busy_share);
  items.add(name("memoryAllocated"), gpu.memory_free_bytes < 0
                                         ? -1
                                         : percent(used, used + static_cast<double>(gpu.memory_free_bytes)));
  items.add(name("memoryAllocatedBytes"), used);
  items.add(name("temp"), gpu.temperature_c);
  items.add(name("powerWatts"), gpu.power_w);
}

}  // namespace

std::vector<NamedText> wandb_machine_items(const MachineUse& before, const MachineUse& now,
                                           const std::vector<GpuUse>& gpus) {
  Items items;
  if (before.cpu_s >= 0 && now.cpu_s > before.cpu_s)
    items.add("cpu", percent(now.cpu_busy_s - before.cpu_busy_s, now.cpu_s - before.cpu_s));
  const auto used = static_cast<double>(now.memory_used_bytes),
             free = static_cast<double>(now.memory_free_bytes), own = static_cast<double>(now.process_bytes);
  const double memory = now.memory_used_bytes < 0 ? -1 : used + free;
  items.add("memory_percent", percent(used, memory));
  items.add("proc.memory.availableMB", now.memory_free_bytes < 0 ? -1 : free / kMiB);
  items.add("proc.memory.rssMB", now.process_bytes < 0 ? -1 : own / kMiB);
  items.add("proc.memory.percent", percent(own, memory));
  const auto disk = static_cast<double>(now.disk_bytes), disk_used = static_cast<double>(now.disk_used_bytes);
  items.add("disk./.usagePercent", percent(disk_used, disk));
  items.add("disk./.usageGB", now.disk_used_bytes < 0 ? -1 : disk_used / kGiB);
  for (size_t i = 0; i < gpus.size(); ++i) add_gpu(items, i, gpus[i]);
  return items.all;
}

std::vector<NamedText> WandbMachine::sample() {
  const MachineUse now = machine_use("/");  // the disk that the official client shows
  const std::vector<NamedText> items = wandb_machine_items(before_, now, gpu_use());
  before_ = now;
  return items;
}

}  // namespace tycho
