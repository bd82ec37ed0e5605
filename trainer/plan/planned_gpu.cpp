// Looks the GPU up by its name.
#include "trainer/plan/planned_gpu.h"

#include "trainer/metrics/device_peak.h"

namespace tycho {

std::string planned_gpu_name(const TrainConfig& config, const PlanDevices& devices) {
  if (!devices.gpu.empty() || config.machine.name.empty() || config.machine.name == "cpu") return devices.gpu;
  return machine_of(config.machine).gpu;
}

GpuShape planned_gpu(const TrainConfig& config, const PlanDevices& devices) {
  constexpr int kSmsOfH100 = 132;
  const GpuShape named = gpu_shape(planned_gpu_name(config, devices));
  GpuShape shape = devices.shape;
  if (shape.num_sms == 0) shape.num_sms = named.num_sms > 0 ? named.num_sms : kSmsOfH100;
  if (shape.compute_capability == 0) shape.compute_capability = named.compute_capability;
  return shape;
}

}  // namespace tycho
