// Utilisation of the GPUs of this machine, from NVIDIA's management library (NVML).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tycho {

/// Values are -1 where the library does not report them.
struct GpuUse {
  double busy_share = -1;  // share of the library's last sampling period in which some kernel ran
  int64_t memory_used_bytes = -1, memory_free_bytes = -1;  // of all processes
  double power_w = -1, temperature_c = -1;
};

/// Returns the present values, one for each GPU in NVML's order: that of PCI buses, whatever
/// CUDA_VISIBLE_DEVICES says. Empty when the library cannot be opened. Callable from any thread.
std::vector<GpuUse> gpu_use(const std::string& library = "libnvidia-ml.so.1");

}  // namespace tycho
