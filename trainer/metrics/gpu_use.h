// How busy the GPUs of this machine are, as NVIDIA's management library (NVML) says.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tycho {

/// -1 for what the library does not say.
struct GpuUse {
  double busy_share = -1;  // of the library's last sampling period, in which some kernel ran
  int64_t memory_used_bytes = -1, memory_free_bytes = -1;  // of all processes
  double power_w = -1, temperature_c = -1;
};

/// Looks now: one for each GPU that NVML shows, in its order. That is the order of PCI buses, and
/// CUDA_VISIBLE_DEVICES changes nothing about it. None where the library cannot be opened. From any thread.
std::vector<GpuUse> gpu_use(const std::string& library = "libnvidia-ml.so.1");

}  // namespace tycho
