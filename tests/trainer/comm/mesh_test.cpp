// A mesh over ranks that are connected: who sums with whom.
#include "trainer/comm/mesh.h"

#include <algorithm>

#include "tests/trainer/aten.h"
#include "tests/trainer/comm/rank_threads.h"
#include "tests/trainer/comm/thread_world.h"

namespace tycho {
namespace {

/// The ranks that a sum over the group counts, each once.
std::vector<int> summed_ranks(Communicator& group, int rank) {
  Tensor sum = at::full({1}, int64_t{1} << (4 * rank), at::kLong);
  group.all_reduce(sum);
  std::vector<int> ranks;
  for (int r = 0; r < 16; ++r)
    if (const int64_t times = sum.item<int64_t>() >> (4 * r) & 15; times != 0) {
      EXPECT_EQ(times, 1);
      ranks.push_back(r);
    }
  return ranks;
}

/// Each group of the mesh sums over the ranks that its shape says, which are numbered from the lowest.
void expect_groups_of(const MeshShape& shape, Communicator& world) {
  const Mesh mesh(shape, world);
  EXPECT_EQ(mesh.coordinates(), coordinates_of(shape, world.rank()));
  for (const AxisSet axes : {AxisSet(Axis::kPp), AxisSet(Axis::kDpReplicate), AxisSet(Axis::kDpShard),
                             AxisSet(Axis::kCp), AxisSet(Axis::kTp), kDataAxes, kShardAxes, kLossAxes}) {
    Communicator& group = mesh.group(axes);
    const std::vector<int> wanted = ranks_of_group(shape, axes, world.rank());
    EXPECT_EQ(group.size(), static_cast<int>(wanted.size()));
    EXPECT_EQ(wanted[static_cast<size_t>(group.rank())], world.rank());
    EXPECT_EQ(summed_ranks(group, world.rank()), wanted) << describe(shape);
  }
}

TEST(Mesh, TwoByTwoRanksReduceAlongEachAxis) {
  expect_all_well(on_ranks(4, [](Communicator& world) {
    const Mesh mesh({{1, 2, 1, 1, 2}}, world);  // dp_replicate 2 x tp 2
    Tensor row = at::full({3}, 1 + world.rank(), at::kFloat), column = row.clone(), all = row.clone();
    mesh.group(Axis::kTp).all_reduce(row);
    mesh.group(Axis::kDpReplicate).all_reduce(column);
    EXPECT_EQ(row[0].item<int>(), world.rank() < 2 ? 1 + 2 : 3 + 4);
    EXPECT_EQ(column[0].item<int>(), world.rank() % 2 == 0 ? 1 + 3 : 2 + 4);
    EXPECT_EQ(mesh.coordinate(Axis::kDpReplicate), world.rank() / 2);
    EXPECT_EQ(mesh.coordinate(Axis::kTp), world.rank() % 2);
    Tensor pieces = at::zeros({2}, at::kInt);
    mesh.group(Axis::kTp).all_gather(pieces, at::full({1}, world.rank(), at::kInt));
    EXPECT_EQ(pieces[1].item<int>() - pieces[0].item<int>(), 1);
  }));
}

TEST(Mesh, NamesItsGroupsAfterTheirAxes) {
  expect_all_well(on_ranks(4, [](Communicator& world) {
    const Mesh mesh({{1, 2, 1, 2, 1}}, world);  // dp_replicate 2 x cp 2
    const Json json = world.noted().calls->json();
    EXPECT_EQ(json.at("coordinates"), (Json{{"dp_replicate", mesh.coordinate(Axis::kDpReplicate)},
                                            {"cp", mesh.coordinate(Axis::kCp)}}));
    std::vector<std::string> names;
    for (const Json& group : json.at("groups")) names.push_back(group.at("name"));
    std::sort(names.begin(), names.end());
    EXPECT_EQ(names, (std::vector<std::string>{"cp", "cp (keys)", "dp_replicate", "world"}));
  }));
}

TEST(Mesh, GroupsAreThoseOfItsShape) {
  for (const MeshShape& shape : {MeshShape{{2, 1, 2, 1, 1}}, MeshShape{{1, 1, 1, 2, 2}}})
    expect_all_well(on_ranks(4, [&](Communicator& world) { expect_groups_of(shape, world); }));
  for (const MeshShape& shape :
       {MeshShape{{2, 1, 2, 1, 2}}, MeshShape{{1, 2, 2, 2, 1}}, MeshShape{{8, 1, 1, 1, 1}}})
    ThreadWorld(8).run([&](Communicator& world) { expect_groups_of(shape, world); });
  ThreadWorld(12).run([](Communicator& world) { expect_groups_of({{1, 3, 2, 1, 2}}, world); });
  expect_groups_of({}, *make_world_of_one());
}

TEST(Mesh, OfReplicasAloneIsTheWorldItself) {
  ThreadWorld(3).run([](Communicator& world) {
    const Mesh mesh({{1, 3, 1, 1, 1}}, world);
    EXPECT_EQ(&mesh.group(Axis::kDpReplicate), &world);
    EXPECT_EQ(&mesh.group(kDataAxes), &world);
    EXPECT_EQ(mesh.group(Axis::kTp).size(), 1);
  });
}

TEST(Mesh, RanksOfASequenceHaveAGroupBesideThatOfTheirParameters) {
  for (const MeshShape& shape :
       {MeshShape{{1, 1, 1, 4, 1}}, MeshShape{{1, 2, 1, 2, 1}}, MeshShape{{1, 1, 2, 2, 1}}})
    ThreadWorld(4).run([&](Communicator& world) {
      const Mesh mesh(shape, world);
      EXPECT_NE(&mesh.context(), &mesh.group(kShardAxes)) << describe(shape);
      EXPECT_EQ(summed_ranks(mesh.context(), world.rank()), ranks_of_group(shape, Axis::kCp, world.rank()));
    });
  ThreadWorld(2).run([](Communicator& world) {
    const Mesh mesh({{1, 1, 2, 1, 1}}, world);
    EXPECT_EQ(mesh.context().size(), 1);
  });
}

TEST(Mesh, NeedsAsManyRanksAsItHasAndNamesSetsWithoutAGroup) {
  ThreadWorld(2).run([](Communicator& world) {
    try {
      const Mesh mesh({{1, 3, 1, 1, 1}}, world);
      FAIL() << "three ranks on two";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "[parallel] expected a mesh of 2 ranks, got 3: dp_replicate 3");
    }
  });
  ThreadWorld(4).run([](Communicator& world) {
    const Mesh mesh({{1, 2, 1, 1, 2}}, world);
    EXPECT_THROW(mesh.group(Axis::kDpReplicate | Axis::kTp), Error);
  });
}

TEST(Mesh, ADeadRankIsNamedInTheGroupsOfOthers) {
  const std::vector<Ended> ended = on_ranks(4, [](Communicator& world) {
    const Mesh mesh({{1, 2, 1, 1, 2}}, world);
    if (world.rank() == 3) return;
    Tensor x = at::ones({4});
    try {
      if (world.rank() == 2) mesh.group(Axis::kTp).all_reduce(x);
      mesh.group(Axis::kDpReplicate).all_reduce(x);
      world.barrier();
    } catch (const Error& error) {
      world.abort(error);
      throw;
    }
  });
  for (size_t r = 0; r < 3; ++r)
    EXPECT_EQ(ended[r].what.rfind("[parallel] rank 3 (", 0), 0U) << ended[r].what;
}

}  // namespace
}  // namespace tycho
