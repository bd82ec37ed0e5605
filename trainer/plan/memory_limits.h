// What keeps this process from taking more memory of the host: the machine, its cgroups, `ulimit`.
// Torch-free.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/machine/config.h"

namespace tycho {

struct MemoryLimit {
  std::string who;  // for people: "this machine", "the cgroup /job_99", "ulimit -v"
  int64_t free_bytes = 0;
  bool is_shared = true;  // by all ranks of the machine; else each process has as much
  int64_t all_bytes = 0;  // used or not, where that is known
};

/// Those that are known here. `root` is put before the paths of /proc and /sys. What the kernel would give up
/// (its cache of files) counts as free, and so does swap.
std::vector<MemoryLimit> host_memory_limits(const std::string& root = "");

/// All memory that processes may have here, used or not: that of the machine, or of a cgroup that has less;
/// and the cores that this process may use. `root` as above.
HostSize host_size(const std::string& root = "");

/// Memory that LibTorch takes for itself in a process that trains: its tables, and pools of its threads.
inline constexpr int64_t kLibTorchBytes = int64_t{200} << 20;
/// Bytes of kLibTorchBytes that this process has not taken yet. `root` as above.
int64_t libtorch_bytes_to_come(const std::string& root = "");

/// "takes 8.5 TB, and this machine has 13.9 GB free" when ranks that take so much each do not fit; "" when
/// they do. `libtorch_bytes` come on top in each; limits of one process do not count them, as what passes
/// them is an error and no kill.
std::string memory_shortage(int64_t bytes_per_rank, int num_local_ranks,
                            const std::vector<MemoryLimit>& limits, int64_t libtorch_bytes = 0);

}  // namespace tycho
