// Processor, memory, GPUs, limits.
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "host/doctor/finding.h"
#include "host/machine.h"
#include "trainer/base/bytes.h"
#include "trainer/base/error.h"
#include "trainer/base/processor_name.h"
#include "trainer/rendezvous/rank_cores.h"

namespace tycho {
namespace {

constexpr double kGiB = 1 << 30;

/// Returns the value of "key : value" in a file of /proc; "" when it is absent.
std::string proc_value(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const size_t at = line.find_first_not_of(" \t:", key.size());
    return at == std::string::npos ? "" : line.substr(at);
  }
  return "";
}

std::string first_line(const std::string& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

double meminfo_bytes(const std::string& key) {
  std::istringstream text(proc_value("/proc/meminfo", key));
  double kib = 0;
  text >> kib;
  return kib * 1024;
}

Finding limit_finding(const char* name, int resource, rlim_t wanted, const char* why, const char* option) {
  rlimit limit = {};
  getrlimit(resource, &limit);
  const bool enough = limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= wanted;
  const std::string value = limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur);
  return {name, enough ? Health::kOk : Health::kWarn, value,
          enough ? "" : fmt::format("{}: `ulimit {} {}` before the run", why, option, wanted)};
}

}  // namespace

std::vector<Finding> check_processor() {
  const std::string flags = " " + proc_value("/proc/cpuinfo", "flags") + " ";
  const auto has = [&](const char* flag) {
    return flags.find(fmt::format(" {} ", flag)) != std::string::npos;
  };
  const int cores = cores_of_rank({});
  std::vector<Finding> findings = {
      {"cpu", Health::kOk, fmt::format("{}, {} cores usable", processor_name(), cores), ""}};
  const char* best = has("amx_bf16")      ? "AMX bf16"
                     : has("avx512_bf16") ? "AVX-512 bf16"
                     : has("avx512f")     ? "AVX-512"
                     : has("avx2")        ? "AVX2"
                                          : "none";
  const bool vectors = has("avx2");
  findings.push_back(
      {"cpu vectors", vectors ? Health::kOk : Health::kWarn, best,
       vectors ? "" : "training on this CPU uses the generic kernels, which are several times slower"});
  return findings;
}

std::vector<Finding> check_memory() {
  const double total = meminfo_bytes("MemTotal"), available = meminfo_bytes("MemAvailable");
  std::vector<Finding> findings = {
      {"memory", available > 2 * kGiB ? Health::kOk : Health::kWarn,
       fmt::format("{} of {} available", human_bytes(available), human_bytes(total)),
       available > 2 * kGiB ? "" : "little is left: check what else is running"}};
  const std::string group = first_line("/sys/fs/cgroup/memory.max");
  if (!group.empty() && group != "max")
    findings.push_back(
        {"memory limit", Health::kOk, human_bytes(std::stod(group)) + " for this control group", ""});
  const std::string pages = first_line("/sys/kernel/mm/transparent_hugepage/enabled");
  const bool never = pages.find("[never]") != std::string::npos;
  if (!pages.empty())
    findings.push_back(
        {"huge pages", never ? Health::kWarn : Health::kOk, pages,
         never ? "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled (as root) makes steps faster"
               : ""});
  return findings;
}

std::vector<Finding> check_gpus() {
  const std::string driver = first_line("/proc/driver/nvidia/version");
  const std::vector<std::string> gpus = visible_gpus();
  if (driver.empty()) return {{"gpu", Health::kOk, "no NVIDIA driver: runs train on the CPU", ""}};
  if (gpus.empty())
    return {{"gpu", Health::kWarn, "a driver, but no GPU that this process may use",
             "check CUDA_VISIBLE_DEVICES and the GPUs allocated to the job"}};
  const size_t at = driver.find("Kernel Module");
  return {{"gpu", Health::kOk,
           fmt::format("{} visible; driver {}", gpus.size(),
                       at == std::string::npos ? driver : driver.substr(at + 13)),
           ""}};
}

std::vector<Finding> check_limits() {
  return {limit_finding("open files", RLIMIT_NOFILE, 4096, "data sets with many shards keep many files open",
                        "-n"),
          limit_finding("processes", RLIMIT_NPROC, 1024,
                        "ranks, loaders and sweeps start processes and threads", "-u")};
}

}  // namespace tycho
