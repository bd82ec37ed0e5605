// Joins CUDA's error to the usual causes: an old driver, a missing device node, CUDA_VISIBLE_DEVICES.
#include "trainer/device/gpu_driver.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace tycho {
namespace {

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

/// Returns the number of the oldest driver for a major version of CUDA: NVIDIA's drivers serve all minor
/// versions of it.
int oldest_driver(int runtime) {
  switch (runtime / 1000) {
    case 11: return 450;
    case 12: return 525;
    default: return 580;
  }
}

/// Returns "" for a driver that is new enough.
std::string driver_problem(const DriverState& state, const GpuSurroundings& around) {
  const std::string needed = fmt::format("CUDA {} needs driver {} or newer", version_text(state.runtime),
                                         oldest_driver(state.runtime));
  if (state.driver == 0)
    return fmt::format("no driver answers, and {}: {}", needed,
                       around.has_control_node
                           ? "libcuda.so.1 of the driver is not found or does not fit; start the container "
                             "with the NVIDIA runtime"
                           : "install it, or start the container with the NVIDIA runtime");
  if (state.driver / 1000 < state.runtime / 1000)
    return fmt::format("the driver supports CUDA {}, and {}: update it", version_text(state.driver), needed);
  return "";
}

}  // namespace

GpuSurroundings gpu_surroundings() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  return {.visible = visible == nullptr ? "" : visible,
          .is_visible_set = visible != nullptr,
          .has_control_node = access("/dev/nvidiactl", F_OK) == 0,
          .has_memory_node = access("/dev/nvidia-uvm", F_OK) == 0};
}

std::string gpu_problem(const DriverState& state, const GpuSurroundings& around) {
  std::string text =
      fmt::format("CUDA finds none: {}", state.error.empty() ? "it lists no GPU" : state.error);
  if (const std::string problem = driver_problem(state, around); !problem.empty())
    return text + "; " + problem;
  text += fmt::format("; the driver supports CUDA {}, {} is used here", version_text(state.driver),
                      version_text(state.runtime));
  if (around.is_visible_set)
    return text +
           fmt::format("; CUDA_VISIBLE_DEVICES is \"{}\": it must name GPUs that `nvidia-smi -L` lists",
                       around.visible);
  if (around.has_control_node && !around.has_memory_node)
    return text +
           "; /dev/nvidia-uvm is missing: `sudo nvidia-modprobe -u -c=0` makes it, and a container must be "
           "given it";
  return text + "; `nvidia-smi` and `dmesg` say more";
}

}  // namespace tycho
