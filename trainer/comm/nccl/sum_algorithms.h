// NCCL's algorithms for sums that give the same bits when a step is repeated. Torch-free.
#pragma once
#include <string>
#include <vector>

namespace tycho {

/// Returns a value of NCCL_ALGO that keeps sums out of the NVLink switch (NVLS), which adds in any order.
/// `version`: of NCCL, 22809 for 2.28.9. Releases before 2.24 know no lists for single collectives: gathers
/// then stay out of the switch, too.
std::string fixed_sum_algorithms(int version);

/// Returns true if one of the files, which NCCL reads like its variables, sets `name`.
bool is_set_in(const std::vector<std::string>& nccl_files, const std::string& name);

/// Sets NCCL_ALGO to the value above, unless the user set it: in the environment, or in a file that NCCL
/// reads. Call before the first group.
void keep_sums_in_fixed_order(int version);

}  // namespace tycho
