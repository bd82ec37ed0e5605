// Asks the route, which names threads and GPUs where they matter.
#include "trainer/run/canonical_route.h"

#include <string>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/comm/collective_strings.h"
#include "trainer/device/device.h"

namespace tycho {

SumOrder sum_order(const TrainConfig& config) {
  if (config.parallel.reduce == GradientOrder::kCanonical) return SumOrder::kTree;
  return config.parallel.fast_sums ? SumOrder::kAny : SumOrder::kRanks;
}

void require_given_threads(const TrainConfig& config, const at::Device& device) {
  if (config.parallel.reduce != GradientOrder::kCanonical) return;
  if (config.threads == 0 && compute_route(device, config.precision).contains("threads"))
    fail(
        ExitCode::kTopology,
        "[parallel] reduce = \"canonical\" needs the same number of threads on every rank, whatever the "
        "number of ranks: here LibTorch multiplies matrices, and its sums depend on the threads. Set threads "
        "= 1, or another number");
}

void require_one_route(const TrainConfig& config, const at::Device& device, Communicator& world) {
  if (config.parallel.reduce != GradientOrder::kCanonical) return;
  const std::vector<std::string> routes =
      all_gather_strings(world, compute_route(device, config.precision).dump());
  for (size_t r = 1; r < routes.size(); ++r)
    if (routes[r] != routes[0])
      fail(ExitCode::kTopology,
           "[parallel] reduce = \"canonical\" needs ranks that compute alike, but rank 0 computes with {}, "
           "rank {} with {}. Start on equal machines, or set parallel.reduce = \"ranks\"",
           routes[0], r, routes[r]);
}

}  // namespace tycho
