// The groups of ranks that a mesh forms: a communicator each.
#pragma once
#include "trainer/recipe/mesh_shape.h"

namespace tycho {

/// Sets that differ only in axes of size 1 share a group; that of all ranks is the world. The last set is
/// kPartAxes of comm/mesh.h.
inline constexpr AxisSet kMeshGroups[] = {
    Axis::kPp, Axis::kDpReplicate, Axis::kDpShard, Axis::kCp, Axis::kTp,
    kDataAxes, kShardAxes,         kCopyAxes,      kLossAxes, kShardAxes | Axis::kTp};

}  // namespace tycho
