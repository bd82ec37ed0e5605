// The GPUs of this machine.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tycho {

/// Returns the GPUs that this process may use, in the form of CUDA_VISIBLE_DEVICES: its value if set, else
/// what the driver lists.
std::vector<std::string> visible_gpus();
/// Returns the model of the machine's first GPU as the driver names it, "NVIDIA H100 80GB HBM3"; "" when
/// there is none. `root` is put before the path of /proc.
std::string gpu_model(const std::string& root = "");
/// Returns `count` sets of `per_trial` GPUs each, as values of CUDA_VISIBLE_DEVICES; empty for 0, and where
/// there are too few GPUs.
std::vector<std::string> gpu_sets(int64_t per_trial, int64_t count);

}  // namespace tycho
