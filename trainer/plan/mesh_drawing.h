// A picture of a mesh: which rank is where, and which axes cross machines. Torch-free.
#pragma once
#include <cstdint>
#include <string>

#include "trainer/recipe/mesh_shape.h"

namespace tycho {

/// Returns lines of at most 80 columns, each with a line end; "" for one rank. A machine is a row, with the
/// ranks of one copy of the model next to each other; machines that repeat the pattern are counted, not
/// drawn. Ranks are assigned in order, `ranks_per_node` to each machine, like tycho launch and Slurm's
/// block distribution.
std::string draw_mesh(const MeshShape& mesh, int64_t ranks_per_node);

}  // namespace tycho
