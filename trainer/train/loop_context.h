// What every part of the training loop works with.
#pragma once
#include <c10/core/Device.h>

#include <atomic>

#include "trainer/comm/communicator.h"
#include "trainer/comm/mesh.h"
#include "trainer/data/rows/opened_data.h"
#include "trainer/metrics/reporter.h"

namespace tycho {

/// The context of this rank in a run. Everything that it refers to must outlive the loop.
struct LoopContext {
  at::Device device = at::kCPU;
  Communicator& world;
  const Mesh& mesh;  // over the ranks of the world
  Reporter& reporter;
  const std::atomic<int>& stop;  // number of the signal that asked for a stop, or 0
  const OpenedData& opened;      // data of the run that is held in memory
};

}  // namespace tycho
