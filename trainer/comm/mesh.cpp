// Groups of a mesh: one split of the world for each set of axes that needs one.
#include "trainer/comm/mesh.h"

#include <algorithm>

#include "trainer/recipe/mesh_groups.h"

namespace tycho {
namespace {

/// Names a group after its axes: "dp_shard x cp". `more`: suffix for a second group of the same axes.
void name_after(Communicator& group, AxisSet axes, const char* more = "") {
  const NotedGroup noted = group.noted();
  if (noted.calls == nullptr) return;
  std::string name;
  for (size_t i = 0; i < kNumAxes; ++i)
    if (const Axis axis = static_cast<Axis>(i); axes.has(axis))
      name += (name.empty() ? "" : " x ") + std::string(axis_name(axis));
  noted.calls->name_group(noted.group, name + more);
}

void note_place(Communicator& world, const MeshShape& shape, const MeshCoordinates& coordinates) {
  const NotedGroup noted = world.noted();
  if (noted.calls == nullptr) return;
  std::vector<std::pair<std::string, int>> places;
  for (size_t i = 0; i < kNumAxes; ++i)
    if (shape.sizes[i] > 1) places.emplace_back(axis_name(static_cast<Axis>(i)), coordinates[i]);
  noted.calls->set_coordinates(std::move(places));
}

}  // namespace

Mesh::Mesh(const MeshShape& shape, Communicator& world)
    : shape_(shape), coordinates_(coordinates_of(shape, world.rank())) {
  TYCHO_CHECK(shape.num_ranks() == world.size(), "[parallel] expected a mesh of {} ranks, got {}: {}",
              world.size(), shape.num_ranks(), describe(shape));
  note_place(world, shape, coordinates_);
  for (const AxisSet axes : kMeshGroups) add(used_axes(shape, axes), world);
  context_ = &group(Axis::kCp);
  if (shape.size(Axis::kCp) == 1 || used_axes(shape, kShardAxes) != AxisSet(Axis::kCp)) return;
  own_.push_back(world.split(ranks_of_group(shape, Axis::kCp, world.rank()).front(), world.rank()));
  context_ = own_.back().get();
  name_after(*context_, Axis::kCp, " (keys)");
}

void Mesh::add(AxisSet used, Communicator& world) {
  const auto is_it = [&](const auto& group) { return group.first == used; };
  if (std::any_of(groups_.begin(), groups_.end(), is_it)) return;
  Communicator* group = &world;
  if (const int size = shape_.size(used); size != world.size()) {
    own_.push_back(size == 1 ? make_world_of_one()
                             : world.split(ranks_of_group(shape_, used, world.rank()).front(), world.rank()));
    group = own_.back().get();
    name_after(*group, used);
  }
  groups_.emplace_back(used, group);
}

Communicator& Mesh::group(AxisSet axes) const {
  const AxisSet used = used_axes(shape_, axes);
  for (const auto& [made, group] : groups_)
    if (made == used) return *group;
  fail(ExitCode::kFailure, "[parallel] this set of axes has no group in a mesh of {}", describe(shape_));
}

}  // namespace tycho
