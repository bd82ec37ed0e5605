// A picture of a mesh: which rank is where, and which axes cross machines. Torch-free.
#pragma once
#include <cstdint>
#include <string>

#include "trainer/parallel/mesh_shape.h"

namespace tycho {

/// Lines of at most 80 columns, each ended; "" for one rank. A machine is a row, with the ranks of one copy
/// of the model beside each other; machines that continue the same pattern are counted, not drawn. Ranks are
/// placed in order, so many on each machine, as tycho launch and Slurm's block distribution do.
std::string draw_mesh(const MeshShape& mesh, int64_t ranks_per_machine);

}  // namespace tycho
