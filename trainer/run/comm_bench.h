// Times the verbs of ranks along each axis of a mesh.
#pragma once
#include <atomic>
#include <string>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/kernels/tensor.h"
#include "trainer/measure/comm_timing.h"
#include "trainer/recipe/mesh_shape.h"

namespace tycho {

/// The operations that can be measured, in the order of the table.
const std::vector<std::string>& comm_verbs();

/// Returns "dp_replicate=2,dp_shard=4" as a mesh of num_ranks; "" puts all ranks along dp_replicate. Throws
/// Error (kUsage) for invalid text, (kTopology) for sizes whose product is not num_ranks.
MeshShape parse_mesh(const std::string& text, int num_ranks);

/// Measures every operation of the request at every size along every axis that has more than one rank, and
/// over all ranks when several axes have. Tensors are on `device`. Collective. Returns the signal that ended
/// it between two lines, 0 for none. Throws Error (kUsage) for invalid sizes or operations.
int bench_comm(const CommBenchRequest& request, Communicator& world, const at::Device& device,
               const std::atomic<int>& stop, const ShowCommTiming& show);

}  // namespace tycho
