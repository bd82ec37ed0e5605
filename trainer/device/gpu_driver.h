// Why CUDA finds no GPU, and what to do.
#pragma once
#include <string>

#include "trainer/cuda_plugin/driver_table.h"

namespace tycho {

/// Surroundings of the driver that explain why it finds no GPU.
struct GpuSurroundings {
  std::string visible;  // CUDA_VISIBLE_DEVICES; "" when it is not set
  bool is_visible_set = false;
  bool has_control_node = false;  // /dev/nvidiactl
  bool has_memory_node = false;   // /dev/nvidia-uvm
};
GpuSurroundings gpu_surroundings();

/// Returns the words of CUDA, the versions of the driver and of the one needed, and what to do.
std::string gpu_problem(const DriverState& state, const GpuSurroundings& around);

}  // namespace tycho
