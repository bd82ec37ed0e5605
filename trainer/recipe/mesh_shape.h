// Positions of ranks on the mesh: sizes to coordinates, and the ranks of a group. Torch-free.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/json.h"

namespace tycho {

/// Axes of the mesh from the slowest to the fastest: the ranks along tp are neighbours. The order and the
/// names are TorchTitan's.
enum class Axis { kPp, kDpReplicate, kDpShard, kCp, kTp };
/// Keys of the axes below `parallel` in a recipe, in the order of Axis.
inline constexpr std::array kAxisNames = {"pp", "dp_replicate", "dp_shard", "cp", "tp"};
inline constexpr size_t kNumAxes = kAxisNames.size();
constexpr const char* axis_name(Axis axis) { return kAxisNames[static_cast<size_t>(axis)]; }

/// Set of axes that form a group together.
class AxisSet {
 public:
  constexpr AxisSet() = default;
  constexpr AxisSet(Axis axis) : bits_(1U << static_cast<unsigned>(axis)) {}  // NOLINT: an axis is a set
  constexpr bool has(Axis axis) const { return (bits_ & AxisSet(axis).bits_) != 0; }
  friend constexpr AxisSet operator|(AxisSet a, AxisSet b) {
    a.bits_ |= b.bits_;
    return a;
  }
  friend constexpr bool operator==(AxisSet, AxisSet) = default;

 private:
  unsigned bits_ = 0;
};
constexpr AxisSet operator|(Axis a, Axis b) { return AxisSet(a) | AxisSet(b); }

/// Axes of ranks that read different data.
inline constexpr AxisSet kDataAxes = Axis::kDpReplicate | Axis::kDpShard;
/// Axes of ranks that share the parameters of one copy of the model.
inline constexpr AxisSet kShardAxes = Axis::kDpShard | Axis::kCp;
/// Axes of ranks that hold one copy of the model between them, and its gradients.
inline constexpr AxisSet kCopyAxes = Axis::kPp | kShardAxes | Axis::kTp;
/// Axes of ranks whose losses are summed; all stages are among them, though only the last one has a loss.
inline constexpr AxisSet kLossAxes = kDataAxes | Axis::kCp | Axis::kPp;

/// One number for each axis, in the order of Axis.
using MeshCoordinates = std::array<int, kNumAxes>;
/// Returns the same number for every axis.
constexpr MeshCoordinates on_all_axes(int value) {
  MeshCoordinates all{};
  for (int& one : all) one = value;
  return all;
}

struct MeshShape {
  MeshCoordinates sizes = on_all_axes(1);

  int size(Axis axis) const { return sizes[static_cast<size_t>(axis)]; }
  /// Returns the product of the sizes of `axes`.
  int size(AxisSet axes) const;
  int num_ranks() const;
  friend bool operator==(const MeshShape&, const MeshShape&) = default;
};

/// Returns the coordinates of a rank from 0 to num_ranks() - 1.
MeshCoordinates coordinates_of(const MeshShape& shape, int rank);
/// Returns the rank at coordinates, each from 0 to the size of its axis less one.
int rank_at(const MeshShape& shape, const MeshCoordinates& coordinates);

/// Returns the ranks with the coordinates of `rank` on every axis except `axes`, ascending, `rank` among
/// them.
std::vector<int> ranks_of_group(const MeshShape& shape, AxisSet axes, int rank);
/// Returns the axes in `axes` that have more than one rank. Sets with the same result have the same groups.
AxisSet used_axes(const MeshShape& shape, AxisSet axes);

/// Describes the mesh for users: "dp_replicate 4 x tp 2", or "1 rank".
std::string describe(const MeshShape& shape);
/// Describes the mesh for checkpoints: {"ranks": 8, "mesh": {"pp": 1, ...}}.
Json mesh_json(const MeshShape& shape);

}  // namespace tycho
