// A stand-in for libnvidia-ml.so.1: three GPUs, of which the second says nothing about its power and the
// third is lost.
#include <cstdint>

namespace {

constexpr int kNotSupported = 3, kGpuIsLost = 15;
struct Utilization {
  unsigned int gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};

bool was_initialised = false;

unsigned int index_of(void* device) {
  return static_cast<unsigned int>(reinterpret_cast<std::uintptr_t>(device)) - 1;
}

}  // namespace

extern "C" {
int nvmlInit_v2() {
  was_initialised = true;
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned int* count) {
  *count = 3;
  return was_initialised ? 0 : 1;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void** device) {
  *device = reinterpret_cast<void*>(std::uintptr_t{index} + 1);
  return index == 2 ? kGpuIsLost : 0;
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* utilization) {
  *utilization = {index_of(device) == 0 ? 97u : 0u, 40};
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  const unsigned long long gib = 1ull << 30;
  *memory = {80 * gib, (index_of(device) == 0 ? 8 : 79) * gib, (index_of(device) == 0 ? 72 : 1) * gib};
  return 0;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned int* milliwatts) {
  *milliwatts = 698500;
  return index_of(device) == 0 ? 0 : kNotSupported;
}
int nvmlDeviceGetTemperature(void* device, unsigned int sensor, unsigned int* celsius) {
  *celsius = index_of(device) == 0 ? 71 : 33;
  return sensor == 0 ? 0 : 2;
}
}
