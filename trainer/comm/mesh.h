// The ranks of a run as a mesh: a communicator along each axis, and along sets of axes that are used
// together.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "trainer/comm/communicator.h"
#include "trainer/recipe/mesh_shape.h"

namespace tycho {

/// Axes of the ranks that hold the same layers of one copy of the model between them: parts of the same
/// parameters.
inline constexpr AxisSet kPartAxes = kShardAxes | Axis::kTp;

class Mesh {
 public:
  /// Makes all groups. Collective; `world` has shape.num_ranks() ranks and must outlive the mesh. The group
  /// of all ranks is `world` itself; a group of this rank alone is a world of one.
  Mesh(const MeshShape& shape, Communicator& world);

  const MeshShape& shape() const { return shape_; }
  const MeshCoordinates& coordinates() const { return coordinates_; }
  int coordinate(Axis axis) const { return coordinates_[static_cast<size_t>(axis)]; }
  /// Returns the group of ranks with this rank's coordinates on every axis except `axes`, in the order of
  /// their ranks. `axes`: one axis, kDataAxes, kShardAxes, kCopyAxes, kLossAxes or kPartAxes, or a set that
  /// differs from these in axes of size 1.
  Communicator& group(AxisSet axes) const;
  /// Separate group of the ranks along cp, so that keys can travel at the same time as the parameters that
  /// these ranks share.
  Communicator& context() const { return *context_; }

 private:
  /// Returns the group of `used`, axes that all have more than one rank; makes it if it is missing.
  /// Collective.
  void add(AxisSet used, Communicator& world);

  MeshShape shape_;
  MeshCoordinates coordinates_;
  std::vector<std::unique_ptr<Communicator>> own_;
  std::vector<std::pair<AxisSet, Communicator*>> groups_;
  Communicator* context_ = nullptr;
};

}  // namespace tycho
