// The ranks of a run.
#include "trainer/comm/world.h"

#include <string>
#include <utility>
#include <vector>

#include "trainer/comm/collective_strings.h"
#include "trainer/comm/nccl/nccl.h"
#include "trainer/comm/tcp.h"
#include "trainer/rendezvous/meet/rendezvous.h"

namespace tycho {

std::unique_ptr<Communicator> open_world(const RankInfo& place, const MeetOptions& options, SumOrder order) {
  return place.num_ranks > 1 ? make_tcp_world(rendezvous(place, options), kCollectiveTimeoutS, order)
                             : make_world_of_one();
}

std::unique_ptr<RankGroup> open_group(const RankInfo& place, double patience_s,
                                      const std::atomic<int>& stop) {
  process_progress().set_prompt();  // another rank may wait for a user, which is not a hang
  return make_tcp_group(rendezvous(place, {.stop = &stop}), patience_s);
}

std::unique_ptr<Communicator> with_device(std::unique_ptr<Communicator> world, const at::Device& device,
                                          SumOrder order) {
  if (world->size() == 1) return world;
  const std::vector<std::string> kinds = all_gather_strings(*world, device.is_cpu() ? "a CPU" : "a GPU");
  for (size_t r = 1; r < kinds.size(); ++r)
    if (kinds[r] != kinds[0])
      fail(ExitCode::kTopology,
           "[device] rank 0 trains on {}, rank {} on {}: set device, or fix the machine that differs",
           kinds[0], r, kinds[r]);
  if (device.is_cpu()) return world;
  return make_nccl_world(std::move(world), device, order);
}

}  // namespace tycho
