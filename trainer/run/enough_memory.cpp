// Compares the plan of a run with the free memory.
#include "trainer/run/enough_memory.h"

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/device/device.h"
#include "trainer/device/gpus.h"
#include "trainer/plan/memory_limits.h"
#include "trainer/plan/plan.h"

namespace tycho {

int64_t require_memory(const TrainConfig& config, const at::Device& device, const RunRequest& request) {
  if (request.force) return 0;
  TrainConfig here = config;
  here.device = device.is_cpu() ? DeviceKind::kCpu : DeviceKind::kCuda;
  const Plan plan = plan_memory(here, {.num_ranks = request.place.num_ranks,
                                       .gpu = device.is_cpu() ? "" : device_name(device),
                                       .shape = gpu_shape_of(device)});
  const int64_t certain = plan.training_bytes - plan.estimated_bytes;
  const int64_t on_host = device.is_cpu() ? plan.memory_bytes : plan.host_bytes;
  std::string shortage =
      memory_shortage(on_host, request.place.num_local_ranks, host_memory_limits(), libtorch_bytes_to_come());
  if (!device.is_cpu())
    if (const int64_t free = free_memory_bytes(device); free > 0 && certain > free)
      shortage = memory_shortage(certain, 1, {{"the GPU", free}});
  if (shortage.empty()) return device.is_cpu() ? plan.memory_bytes : certain;
  fail(ExitCode::kNumerics,
       "[memory] not enough memory: this run {}\n{}A smaller micro_batch or recompute.mode=full take less; "
       "`tycho run --force` starts it anyway",
       shortage, memory_table(plan));
}

}  // namespace tycho
