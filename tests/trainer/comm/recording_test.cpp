// Recorded schedules of ranks: those that fit together, and what is wrong with those that do not.
#include "tests/trainer/comm/recording.h"

#include <gtest/gtest.h>

#include "tests/trainer/comm/thread_world.h"
#include "trainer/comm/mesh.h"

namespace tycho {
namespace {

std::vector<Schedule> recorded(int num_ranks, const std::function<void(Communicator&)>& body) {
  std::vector<Schedule> schedules(static_cast<size_t>(num_ranks));
  ThreadWorld(num_ranks).run([&](Communicator& inner) {
    RecordingCommunicator world(inner, schedules[static_cast<size_t>(inner.rank())]);
    body(world);
  });
  return schedules;
}

// A step over dp_shard x tp x pp: gathers, sums of activations, messages between stages, gradients.
TEST(Recording, AStepOnAMeshOfEightRanksFitsTogether) {
  const std::vector<Schedule> schedules = recorded(8, [](Communicator& world) {
    const Mesh mesh({{2, 1, 2, 1, 2}}, world);
    Tensor piece = at::ones({6}), whole = at::ones({12}), x = at::ones({5});
    mesh.group(Axis::kDpShard).start(GroupedCall::all_gather(whole, piece))->wait();
    Communicator& stages = mesh.group(Axis::kPp);
    if (stages.rank() == 1) stages.recv(x, 0);
    mesh.group(Axis::kTp).all_reduce(x);
    if (stages.rank() == 0) stages.send(x, 1);
    const auto pending = mesh.group(Axis::kDpShard).start(GroupedCall::reduce_scatter(piece, whole));
    mesh.group(Axis::kTp).broadcast(x, 1);
    pending->wait();
    world.barrier();
  });
  EXPECT_EQ(first_fault(schedules), "");
  const RecordedCall last = {"barrier", "world", {0, 1, 2, 3, 4, 5, 6, 7}};
  for (const Schedule& schedule : schedules) EXPECT_EQ(schedule.back(), last);
  const auto is_message = [](const RecordedCall& call) { return call.op == "send" && call.peer == 5; };
  EXPECT_EQ(std::count_if(schedules[1].begin(), schedules[1].end(), is_message), 1);
}

TEST(Recording, RanksOfAGroupThatCallInAnotherOrderAreFound) {
  const std::vector<int> both = {0, 1};
  const RecordedCall sum = {"all_reduce", "world", both, 16}, barrier = {"barrier", "world", both};
  EXPECT_EQ(first_fault({{sum, barrier}, {sum, barrier}}), "");
  EXPECT_EQ(first_fault({{sum, barrier}, {barrier, sum}}),
            "call 0 of world: rank 0 calls all_reduce of 16 bytes in world, rank 1 calls barrier of 0 bytes "
            "in world");
  EXPECT_EQ(first_fault({{sum, barrier}, {sum}}),
            "call 1 of world: rank 0 calls barrier of 0 bytes in world, rank 1 calls nothing more");
  EXPECT_EQ(first_fault({{sum}, {}}), "rank 1 calls nothing in world, rank 0 does");
  RecordedCall larger = sum;
  larger.num_bytes = 20;
  EXPECT_NE(first_fault({{sum}, {larger}}), "");
  // The order between two groups is free.
  const RecordedCall other = {"all_reduce", "world/0.0", both, 16};
  EXPECT_EQ(first_fault({{sum, other}, {other, sum}}), "");
}

TEST(Recording, AMessageWithoutItsOtherHalfIsFound) {
  const std::vector<int> both = {0, 1};
  const RecordedCall send = {"send", "world", both, 8, 1}, recv = {"recv", "world", both, 8, 0};
  RecordedCall shorter = recv;
  shorter.num_bytes = 4;
  EXPECT_EQ(first_fault({{send, send}, {recv, recv}}), "");
  EXPECT_EQ(first_fault({{send, send}, {recv}}),
            "in world rank 0 sends rank 1 messages of [8, 8] bytes, which receives [8]");
  EXPECT_EQ(first_fault({{}, {recv}}),
            "in world rank 0 sends rank 1 messages of [] bytes, which receives [8]");
  EXPECT_NE(first_fault({{send}, {shorter}}), "");
}

}  // namespace
}  // namespace tycho
