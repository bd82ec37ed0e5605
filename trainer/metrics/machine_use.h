// Utilisation of this machine: processors, memory and disk.
#pragma once
#include <cstdint>
#include <string>

namespace tycho {

/// Processor seconds, summed over all processors since the machine started, and bytes. In a container they
/// describe the whole machine, except for process_bytes. -1 where unknown.
struct MachineUse {
  double cpu_busy_s = -1, cpu_s = -1;  // busy and total
  int64_t memory_used_bytes = -1,
          memory_free_bytes = -1;                 // free includes memory that can be reclaimed at once
  int64_t process_bytes = -1;                     // resident memory of this process
  int64_t disk_free_bytes = -1;                   // available to this user on the file system of the folder
  int64_t disk_bytes = -1, disk_used_bytes = -1;  // of that file system, for all users
};

/// Reads /proc and the file system of `dir` now. Callable from any thread.
MachineUse machine_use(const std::string& dir);

/// Reads the texts of /proc/stat, /proc/meminfo and /proc/self/statm.
MachineUse parse_machine_use(const std::string& stat, const std::string& meminfo, const std::string& statm);

}  // namespace tycho
