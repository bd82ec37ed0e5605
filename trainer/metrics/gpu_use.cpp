// Opens NVML, a part of the driver, by name, once. It stays open.
#include "trainer/metrics/gpu_use.h"

#include <dlfcn.h>

#include <map>
#include <mutex>

namespace tycho {
namespace {

// The part of nvml.h that is used, as its documentation has it. 0 is success.
using NvmlDevice = void*;
struct NvmlUtilization {
  unsigned int gpu = 0, memory = 0;  // percent
};
struct NvmlMemory {
  unsigned long long total = 0, free = 0, used = 0;
};
constexpr unsigned int kDieTemperature = 0;

struct Nvml {
  int (*init)() = nullptr;
  int (*count)(unsigned int*) = nullptr;
  int (*device)(unsigned int, NvmlDevice*) = nullptr;
  int (*utilization)(NvmlDevice, NvmlUtilization*) = nullptr;
  int (*memory)(NvmlDevice, NvmlMemory*) = nullptr;
  int (*power)(NvmlDevice, unsigned int*) = nullptr;
  int (*temperature)(NvmlDevice, unsigned int, unsigned int*) = nullptr;
  bool works = false;
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

/// Opens the library. `works` is false when it is missing or has no driver.
Nvml open_nvml(const std::string& path) {
  Nvml nvml;
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  nvml.works = library != nullptr && find(library, "nvmlInit_v2", nvml.init) &&
               find(library, "nvmlDeviceGetCount_v2", nvml.count) &&
               find(library, "nvmlDeviceGetHandleByIndex_v2", nvml.device) &&
               find(library, "nvmlDeviceGetUtilizationRates", nvml.utilization) &&
               find(library, "nvmlDeviceGetMemoryInfo", nvml.memory) &&
               find(library, "nvmlDeviceGetPowerUsage", nvml.power) &&
               find(library, "nvmlDeviceGetTemperature", nvml.temperature) && nvml.init() == 0;
  return nvml;
}

const Nvml& nvml_at(const std::string& path) {
  static std::mutex mutex;
  static std::map<std::string, Nvml> opened;
  const std::lock_guard lock(mutex);
  const auto found = opened.find(path);
  return found != opened.end() ? found->second : opened.emplace(path, open_nvml(path)).first->second;
}

GpuUse use_of(const Nvml& nvml, NvmlDevice device) {
  GpuUse use;
  NvmlUtilization utilization;
  NvmlMemory memory;
  unsigned int milliwatts = 0, celsius = 0;
  if (nvml.utilization(device, &utilization) == 0) use.busy_share = utilization.gpu / 100.0;
  if (nvml.memory(device, &memory) == 0) {
    use.memory_used_bytes = static_cast<int64_t>(memory.used);
    use.memory_free_bytes = static_cast<int64_t>(memory.free);
  }
  if (nvml.power(device, &milliwatts) == 0) use.power_w = milliwatts / 1000.0;
  if (nvml.temperature(device, kDieTemperature, &celsius) == 0) use.temperature_c = celsius;
  return use;
}

}  // namespace

std::vector<GpuUse> gpu_use(const std::string& library) {
  const Nvml& nvml = nvml_at(library);
  std::vector<GpuUse> all;
  unsigned int count = 0;
  if (!nvml.works || nvml.count(&count) != 0) return all;
  for (unsigned int i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    all.push_back(nvml.device(i, &device) == 0 ? use_of(nvml, device) : GpuUse{});
  }
  return all;
}

}  // namespace tycho
