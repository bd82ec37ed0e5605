// Asks the route, which names threads where they matter.
#include "trainer/run/canonical_route.h"

#include "trainer/base/error.h"
#include "trainer/device/device.h"

namespace tycho {

void require_canonical_route(const TrainConfig& config, const at::Device& device) {
  if (config.parallel.reduce != GradientOrder::kCanonical) return;
  if (!device.is_cpu())
    fail(ExitCode::kTopology,
         "[parallel] reduce = \"canonical\" works on CPUs, and this run is on a GPU, where NCCL chooses the "
         "order of sums. Set parallel.reduce = \"ranks\", or device = \"cpu\"");
  if (config.threads == 0 && compute_route(device, config.precision).contains("threads"))
    fail(
        ExitCode::kTopology,
        "[parallel] reduce = \"canonical\" needs the same number of threads on every rank, whatever the "
        "number of ranks: here LibTorch multiplies matrices, and its sums depend on the threads. Set threads "
        "= 1, or another number");
}

}  // namespace tycho
