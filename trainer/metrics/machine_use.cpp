// Reads /proc.
#include "trainer/metrics/machine_use.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace tycho {
namespace {

/// Returns the text of a file; "" when it cannot be read.
std::string text_in(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Returns the number after a key such as "MemTotal:", in bytes.
int64_t bytes_of(const std::string& meminfo, const std::string& key) {
  std::istringstream lines(meminfo);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream rest(line.substr(key.size()));
    int64_t kibibytes = -1;
    return rest >> kibibytes ? kibibytes * 1024 : -1;
  }
  return -1;
}

}  // namespace

MachineUse parse_machine_use(const std::string& stat, const std::string& meminfo, const std::string& statm) {
  MachineUse use;
  // cpu  user nice system idle iowait irq softirq steal, in ticks; what guests use is part of user.
  std::istringstream line(stat);
  std::string name;
  int64_t ticks = 0, all = 0, idle = 0, count = 0;
  for (line >> name; count < 8 && line >> ticks; ++count) {
    all += ticks;
    if (count == 3 || count == 4) idle += ticks;
  }
  if (name == "cpu" && count >= 4) {
    const auto ticks_per_s = static_cast<double>(::sysconf(_SC_CLK_TCK));
    use.cpu_s = static_cast<double>(all) / ticks_per_s;
    use.cpu_busy_s = static_cast<double>(all - idle) / ticks_per_s;
  }
  const int64_t total_bytes = bytes_of(meminfo, "MemTotal:");
  use.memory_free_bytes = bytes_of(meminfo, "MemAvailable:");
  if (total_bytes >= 0 && use.memory_free_bytes >= 0)
    use.memory_used_bytes = total_bytes - use.memory_free_bytes;
  std::istringstream sizes(statm);
  int64_t pages = 0, resident_pages = 0;
  if (sizes >> pages >> resident_pages) use.process_bytes = resident_pages * ::sysconf(_SC_PAGESIZE);
  return use;
}

MachineUse machine_use(const std::string& dir) {
  MachineUse use =
      parse_machine_use(text_in("/proc/stat"), text_in("/proc/meminfo"), text_in("/proc/self/statm"));
  struct statvfs disk = {};
  if (::statvfs(dir.c_str(), &disk) == 0) {
    const auto bytes = [&](fsblkcnt_t blocks) {
      return static_cast<int64_t>(blocks) * static_cast<int64_t>(disk.f_frsize);
    };
    use.disk_free_bytes = bytes(disk.f_bavail);
    use.disk_bytes = bytes(disk.f_blocks);
    use.disk_used_bytes = bytes(disk.f_blocks - disk.f_bfree);
  }
  return use;
}

}  // namespace tycho
