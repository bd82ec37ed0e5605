// What keeps this process from taking more memory of the host: the machine, its cgroups, `ulimit`.
// Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/recipe/machine.h"

namespace tycho {

struct MemoryLimit {
  std::string who;  // for display: "this machine", "the cgroup /job_99", "ulimit -v"
  int64_t free_bytes = 0;
  bool is_shared = true;  // shared by all ranks of the machine; otherwise each process has that much
  int64_t all_bytes = 0;  // total, used or not, when known
};

/// Returns the known limits. `root` is put before the paths of /proc and /sys. Memory that the kernel would
/// give up (its cache of files) counts as free, and so does swap.
std::vector<MemoryLimit> host_memory_limits(const std::string& root = "");

/// Returns all memory that processes may have here, used or not (that of the machine, or of a smaller
/// cgroup), and the cores that this process may use. See host_memory_limits for `root`.
HostSize host_size(const std::string& root = "");

/// Memory that LibTorch takes for itself in a process that trains: its tables, and pools of its threads.
inline constexpr int64_t kLibTorchBytes = int64_t{200} << 20;
/// Returns the part of kLibTorchBytes that this process has not taken yet. See host_memory_limits for `root`.
int64_t libtorch_bytes_to_come(const std::string& root = "");

/// Returns "takes 8.5 TB, and this machine has 13.9 GB free" when the ranks do not fit with `bytes_per_rank`
/// each; "" when they do. `libtorch_bytes` are added for each rank. Limits of a single process do not count
/// them, because exceeding such a limit is an error and not a kill.
std::string memory_shortage(int64_t bytes_per_rank, int num_local_ranks,
                            const std::vector<MemoryLimit>& limits, int64_t libtorch_bytes = 0);

}  // namespace tycho
