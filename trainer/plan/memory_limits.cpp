// Reads what Linux says of memory that is free.
#include "trainer/plan/memory_limits.h"

#include <sched.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "trainer/base/bytes.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

/// cgroups without a limit report "max", or a number of pages that no machine has.
constexpr int64_t kUnlimited = int64_t{1} << 60;

std::optional<int64_t> number_in(const std::string& text) {
  std::istringstream in(text);
  int64_t number = 0;
  if (in >> number) return number;
  return {};
}

/// Returns the number after `key` at the beginning of a line; nullopt when there is none ("unlimited").
std::optional<int64_t> number_after(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) return number_in(line.substr(key.size()));
  return {};
}

void add_machine(const fs::path& root, std::vector<MemoryLimit>& limits) {
  const fs::path meminfo = root / "proc/meminfo";
  const std::optional<int64_t> available_kib = number_after(meminfo, "MemAvailable:");
  if (!available_kib) return;
  const int64_t swap_kib = number_after(meminfo, "SwapFree:").value_or(0);
  limits.push_back({"this machine", (*available_kib + swap_kib) * 1024});
}

/// The file names of a version of cgroups.
struct CgroupFiles {
  const char *limit, *use, *inactive, *active;
};
constexpr CgroupFiles kFirst = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file",
                                "total_active_file"};
constexpr CgroupFiles kSecond = {"memory.max", "memory.current", "inactive_file", "active_file"};

void add_cgroup(const fs::path& folder, const std::string& name, const CgroupFiles& files,
                std::vector<MemoryLimit>& limits) {
  const std::optional<int64_t> limit = number_after(folder / files.limit, ""),
                               use = number_after(folder / files.use, "");
  if (!limit || !use || *limit >= kUnlimited) return;
  int64_t cache = 0;
  for (const char* kind : {files.inactive, files.active})
    cache += number_after(folder / "memory.stat", std::string(kind) + " ").value_or(0);
  limits.push_back({"the cgroup " + name, std::max<int64_t>(0, *limit - std::max<int64_t>(0, *use - cache)),
                    /*is_shared=*/true, *limit});
}

/// Adds the limits of the process's own cgroup and its parents. In a container the path may be the host's and
/// not exist here: then only the root is read.
void add_cgroups(const fs::path& root, std::vector<MemoryLimit>& limits) {
  std::ifstream in(root / "proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool is_second = controllers == ",,";
    if (!is_second && controllers.find(",memory,") == std::string::npos) continue;
    const fs::path tree = root / (is_second ? "sys/fs/cgroup" : "sys/fs/cgroup/memory");
    fs::path name = fs::path(line.substr(second + 1)).lexically_normal();
    while (true) {
      add_cgroup(tree / name.relative_path(), name.string(), is_second ? kSecond : kFirst, limits);
      if (!name.has_relative_path()) break;
      name = name.parent_path();
    }
  }
}

void add_ulimits(const fs::path& root, std::vector<MemoryLimit>& limits) {
  const auto add = [&](const char* option, const char* limit_name, const char* use_name) {
    const std::optional<int64_t> limit = number_after(root / "proc/self/limits", limit_name);
    const std::optional<int64_t> use_kib = number_after(root / "proc/self/status", use_name);
    if (limit && use_kib)
      limits.push_back({option, std::max<int64_t>(0, *limit - *use_kib * 1024), /*is_shared=*/false});
  };
  add("ulimit -v", "Max address space", "VmSize:");
  add("ulimit -d", "Max data size", "VmData:");
}

}  // namespace

std::vector<MemoryLimit> host_memory_limits(const std::string& root) {
  const fs::path top = root + "/";
  std::vector<MemoryLimit> limits;
  add_machine(top, limits);
  add_cgroups(top, limits);
  add_ulimits(top, limits);
  return limits;
}

HostSize host_size(const std::string& root) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  const bool known = sched_getaffinity(0, sizeof cores, &cores) == 0;
  int64_t memory_bytes = number_after(fs::path(root + "/") / "proc/meminfo", "MemTotal:").value_or(0) * 1024;
  for (const MemoryLimit& limit : host_memory_limits(root))
    if (limit.all_bytes > 0) memory_bytes = std::min(memory_bytes, limit.all_bytes);
  return {memory_bytes, known ? std::max(1, CPU_COUNT(&cores)) : 1};
}

int64_t libtorch_bytes_to_come(const std::string& root) {
  const int64_t taken_kib = number_after(fs::path(root + "/") / "proc/self/status", "RssAnon:").value_or(0);
  return std::max<int64_t>(0, kLibTorchBytes - taken_kib * 1024);
}

std::string memory_shortage(int64_t bytes_per_rank, int num_local_ranks,
                            const std::vector<MemoryLimit>& limits, int64_t libtorch_bytes) {
  const auto human = [](int64_t n) { return human_bytes(static_cast<double>(n)); };
  const MemoryLimit* tightest = nullptr;
  const auto share = [&](const MemoryLimit& limit) {
    return limit.is_shared ? limit.free_bytes / num_local_ranks : limit.free_bytes;
  };
  const auto needed = [&](const MemoryLimit& limit) {
    return bytes_per_rank + (limit.is_shared ? libtorch_bytes : 0);
  };
  for (const MemoryLimit& limit : limits)
    if (needed(limit) > share(limit) && (tightest == nullptr || share(limit) < share(*tightest)))
      tightest = &limit;
  if (tightest == nullptr) return "";
  const bool together = tightest->is_shared && num_local_ranks > 1;
  const bool with_libtorch = tightest->is_shared && libtorch_bytes > 0;
  return fmt::format("takes {}{}{}, and {} {} {}", human(bytes_per_rank),
                     with_libtorch ? " and " + human(libtorch_bytes) + " for LibTorch itself" : "",
                     together ? fmt::format(" in each of {} ranks here", num_local_ranks) : "", tightest->who,
                     tightest->is_shared ? "has" : "leaves", human(tightest->free_bytes)) +
         (tightest->is_shared ? " free" : " to a process");
}

}  // namespace tycho
