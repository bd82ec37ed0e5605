// PyTorch's strict mode sets ^NVLS, which leaves NVLSTree, whose sums between nodes also begin in the switch.
#include "trainer/comm/nccl/sum_algorithms.h"

#include <cstdlib>
#include <fstream>

#include "trainer/base/environment.h"

namespace tycho {
namespace {

constexpr int kKnowsCollectives = 22400;

/// Returns the files that NCCL reads, the user's before the machine's.
std::vector<std::string> nccl_files() {
  const std::string own = environment_variable("NCCL_CONF_FILE"), home = environment_variable("HOME");
  return {own.empty() ? home + "/.nccl.conf" : own, "/etc/nccl.conf"};
}

}  // namespace

std::string fixed_sum_algorithms(int version) {
  if (version < kKnowsCollectives) return "^NVLS,NVLSTree";
  return "allreduce:^NVLS,NVLSTree;reducescatter:^NVLS,NVLSTree";
}

bool is_set_in(const std::vector<std::string>& files, const std::string& name) {
  for (const std::string& file : files) {
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);)
      if (line.starts_with(name + "=")) return true;
  }
  return false;
}

void keep_sums_in_fixed_order(int version) {
  constexpr const char* kVariable = "NCCL_ALGO";
  if (std::getenv(kVariable) != nullptr || is_set_in(nccl_files(), kVariable)) return;
  setenv(kVariable, fixed_sum_algorithms(version).c_str(), /*overwrite=*/0);
}

}  // namespace tycho
