// How busy this machine is.
#pragma once
#include <cstdint>
#include <string>

namespace tycho {

/// Seconds of all processors together since the machine started, and bytes. In a container they are those of
/// the whole machine, but for the process. -1 for what cannot be found out.
struct MachineUse {
  double cpu_busy_s = -1, cpu_s = -1;                      // computing, and in all
  int64_t memory_used_bytes = -1, memory_free_bytes = -1;  // what can be had at once counts as free
  int64_t process_bytes = -1;                              // of this process in memory
  int64_t disk_free_bytes = -1;                            // for us, where the folder is
};

/// Looks now: at /proc, and at the file system of `dir`. From any thread.
MachineUse machine_use(const std::string& dir);

/// The same from the texts of /proc/stat, /proc/meminfo and /proc/self/statm.
MachineUse parse_machine_use(const std::string& stat, const std::string& meminfo, const std::string& statm);

}  // namespace tycho
