// Memory of a GPU that CUDA, cuBLAS and NCCL take for themselves. Torch-free.
#pragma once
#include <vector>

#include "trainer/plan/state_memory.h"
#include "trainer/recipe/mesh_shape.h"

namespace tycho {

/// Returns estimates: nothing of this was measured with Tycho yet.
std::vector<ByteItem> gpu_library_memory(const MeshShape& mesh, bool is_ring);

}  // namespace tycho
