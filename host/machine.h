// The GPUs of this machine.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tycho {

/// The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them: that variable if it is set, else
/// what the driver lists.
std::vector<std::string> visible_gpus();
/// `count` sets of `per_trial` GPUs each, as values of CUDA_VISIBLE_DEVICES; none for 0 or where there are
/// too few.
std::vector<std::string> gpu_sets(int64_t per_trial, int64_t count);

}  // namespace tycho
