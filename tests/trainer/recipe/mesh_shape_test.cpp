// Every shape of a few ranks: groups tile the ranks, and all members of a group agree on it.
#include "trainer/recipe/mesh_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace tycho {
namespace {

constexpr Axis kAxes[] = {Axis::kPp, Axis::kDpReplicate, Axis::kDpShard, Axis::kCp, Axis::kTp};

std::vector<MeshShape> all_shapes(int most_ranks) {
  std::vector<MeshShape> shapes = {MeshShape()};
  for (size_t axis = 0; axis < kNumAxes; ++axis) {
    const std::vector<MeshShape> before = shapes;
    for (MeshShape shape : before)
      for (int size = 2; shape.num_ranks() / shape.sizes[axis] * size <= most_ranks; ++size) {
        shape.sizes[axis] = size;
        shapes.push_back(shape);
      }
  }
  return shapes;
}

/// Every set of axes.
std::vector<AxisSet> all_sets() {
  std::vector<AxisSet> sets = {AxisSet()};
  for (const Axis axis : kAxes) {
    const std::vector<AxisSet> before = sets;
    for (const AxisSet set : before) sets.push_back(set | axis);
  }
  return sets;
}

TEST(MeshShape, RanksAreLaidOutAsInTorchTitan) {
  const MeshShape shape{{2, 1, 2, 1, 2}};  // pp, dp_replicate, dp_shard, cp, tp
  EXPECT_EQ(shape.num_ranks(), 8);
  EXPECT_EQ(coordinates_of(shape, 0), (MeshCoordinates{0, 0, 0, 0, 0}));
  EXPECT_EQ(coordinates_of(shape, 1), (MeshCoordinates{0, 0, 0, 0, 1}));
  EXPECT_EQ(coordinates_of(shape, 2), (MeshCoordinates{0, 0, 1, 0, 0}));
  EXPECT_EQ(coordinates_of(shape, 4), (MeshCoordinates{1, 0, 0, 0, 0}));
  EXPECT_EQ(ranks_of_group(shape, Axis::kTp, 6), (std::vector<int>{6, 7}));
  EXPECT_EQ(ranks_of_group(shape, Axis::kDpShard, 5), (std::vector<int>{5, 7}));
  EXPECT_EQ(ranks_of_group(shape, Axis::kPp, 5), (std::vector<int>{1, 5}));
  EXPECT_EQ(ranks_of_group(shape, kDataAxes, 4), (std::vector<int>{4, 6}));
  EXPECT_EQ(ranks_of_group(shape, Axis::kPp | Axis::kTp, 2), (std::vector<int>{2, 3, 6, 7}));
  EXPECT_STREQ(axis_name(Axis::kDpReplicate), "dp_replicate");
  EXPECT_EQ(describe(shape), "pp 2 x dp_shard 2 x tp 2");
  EXPECT_EQ(describe({}), "1 rank");
}

TEST(MeshShape, CoordinatesAndRanksAreEachOthersInverse) {
  for (const MeshShape& shape : all_shapes(24)) {
    std::set<MeshCoordinates> seen;
    for (int rank = 0; rank < shape.num_ranks(); ++rank) {
      const MeshCoordinates coordinates = coordinates_of(shape, rank);
      EXPECT_EQ(rank_at(shape, coordinates), rank);
      for (size_t i = 0; i < kNumAxes; ++i) {
        EXPECT_GE(coordinates[i], 0);
        EXPECT_LT(coordinates[i], shape.sizes[i]);
      }
      EXPECT_TRUE(seen.insert(coordinates).second) << describe(shape) << ", rank " << rank;
    }
  }
}

TEST(MeshShape, GroupsTileTheRanksAndTheirMembersAgree) {
  for (const MeshShape& shape : all_shapes(12))
    for (const AxisSet axes : all_sets()) {
      std::vector<int> times_seen(static_cast<size_t>(shape.num_ranks()));
      for (int rank = 0; rank < shape.num_ranks(); ++rank) {
        const std::vector<int> group = ranks_of_group(shape, axes, rank);
        ASSERT_EQ(static_cast<int>(group.size()), shape.size(axes)) << describe(shape);
        EXPECT_TRUE(std::is_sorted(group.begin(), group.end()));
        EXPECT_EQ(std::count(group.begin(), group.end(), rank), 1);
        for (const int member : group) EXPECT_EQ(ranks_of_group(shape, axes, member), group);
        if (group.front() != rank) continue;
        for (const int member : group) ++times_seen[static_cast<size_t>(member)];
      }
      EXPECT_EQ(std::count(times_seen.begin(), times_seen.end(), 1), shape.num_ranks()) << describe(shape);
    }
}

// What stands still along the other axes does; what moves, moves along these alone.
TEST(MeshShape, MembersDifferOnTheAxesOfTheirGroupAlone) {
  const MeshShape shape{{2, 3, 2, 1, 2}};
  for (const AxisSet axes : all_sets())
    for (int rank = 0; rank < shape.num_ranks(); ++rank)
      for (const int member : ranks_of_group(shape, axes, rank))
        for (const Axis axis : kAxes) {
          if (axes.has(axis)) continue;
          const auto i = static_cast<size_t>(axis);
          EXPECT_EQ(coordinates_of(shape, member)[i], coordinates_of(shape, rank)[i]);
        }
}

TEST(MeshShape, AxesOfSizeOneMakeNoDifference) {
  for (const MeshShape& shape : all_shapes(8))
    for (const AxisSet axes : all_sets()) {
      const AxisSet used = used_axes(shape, axes);
      for (const Axis axis : kAxes) EXPECT_EQ(used.has(axis), axes.has(axis) && shape.size(axis) > 1);
      EXPECT_EQ(ranks_of_group(shape, used, 0), ranks_of_group(shape, axes, 0));
    }
}

}  // namespace
}  // namespace tycho
