// The ranks of a run.
#include "trainer/parallel/world.h"

#include <string>
#include <utility>
#include <vector>

#include "trainer/parallel/gather_texts.h"
#include "trainer/parallel/gloo.h"
#include "trainer/parallel/nccl.h"

namespace tycho {

std::unique_ptr<Communicator> open_world(const RankPlace& place) {
  return place.num_ranks > 1 ? make_gloo_world(place) : make_world_of_one();
}

std::unique_ptr<Communicator> with_device(std::unique_ptr<Communicator> world, const at::Device& device) {
  if (world->size() == 1) return world;
  const std::vector<std::string> kinds = gather_texts(*world, device.is_cpu() ? "a CPU" : "a GPU");
  for (size_t r = 1; r < kinds.size(); ++r)
    if (kinds[r] != kinds[0])
      fail(ExitCode::kTopology,
           "[device] rank 0 trains on {}, rank {} on {}: set device, or fix the machine that differs",
           kinds[0], r, kinds[r]);
  if (device.is_cpu()) return world;
  return make_nccl_world(std::move(world), device);
}

}  // namespace tycho
