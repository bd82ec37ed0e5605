// Rank 0 of a world whose other ranks do not exist, for record mode.
#pragma once
#include <memory>

#include "trainer/comm/communicator.h"
#include "trainer/recipe/mesh_shape.h"

namespace standin {

/// Makes a world in which every other rank says what rank 0 says: gathers repeat its tensor, sums multiply
/// it, messages get lost. `shape`: of the mesh that will be made of the world.
std::unique_ptr<tycho::Communicator> lone_rank_of(const tycho::MeshShape& shape);

}  // namespace standin
