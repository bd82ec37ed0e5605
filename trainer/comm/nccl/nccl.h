// Ranks whose tensors are on GPUs: NCCL for these tensors, and a world of host memory for all others.
#pragma once
#include <memory>

#include "trainer/comm/communicator.h"
#include "trainer/comm/sockets/rank_sums.h"

namespace tycho {

/// Makes a world that transfers tensors on `device`, this rank's own, by NCCL in the order of its current
/// stream, and tensors in host memory by `host`. `order`: of sums on the device; kRanks leaves it to NCCL,
/// but keeps sums out of the NVLink switch, which adds in any order, unless NCCL_ALGO is set; kAny leaves
/// NCCL that, too. Collective over `host`. Throws Error (kTopology).
std::unique_ptr<Communicator> make_nccl_world(std::unique_ptr<Communicator> host, const at::Device& device,
                                              SumOrder order = SumOrder::kRanks);

}  // namespace tycho
