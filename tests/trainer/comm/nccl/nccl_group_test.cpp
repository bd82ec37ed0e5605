// A group of NCCL that does not hang, with an NCCL of our own that does.
#include "trainer/comm/nccl/nccl_group.h"

#include <atomic>
#include <chrono>

#include "tests/trainer/comm/rank_threads.h"

namespace tycho {
namespace {

/// States that each rank's group reports; `aborted` counts the groups that a watchdog ended, `left` those
/// that their owners left.
struct FakeNccl {
  std::array<std::atomic<NcclTable::State>, 2> states = {NcclTable::State::kReady, NcclTable::State::kReady};
  std::array<std::atomic<int>, 2> aborted = {0, 0}, left = {0, 0};
  std::atomic<int> fails_to_join = -1;
};
FakeNccl* fake = nullptr;

size_t rank_of(NcclTable::Group group) { return reinterpret_cast<size_t>(group) - 1; }

class NcclGroupTest : public testing::Test {
 protected:
  void SetUp() override {
    fake = &fake_;
    set_nccl(&kTable);
  }
  void TearDown() override { set_nccl(nullptr); }

  /// Until the group of this rank was ended by whoever watches it.
  void wait_until_aborted(int rank) {
    while (fake_.aborted[static_cast<size_t>(rank)] == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }

  FakeNccl fake_;

 private:
  static constexpr NcclTable kTable = {
      .make_id = [](char* id) { std::fill_n(id, NcclTable::kIdBytes, 'x'); },
      .join = [](const char*, int rank, int) -> NcclTable::Group {
        if (fake->fails_to_join == rank) fail(ExitCode::kTopology, "[nccl] no way to the others");
        return reinterpret_cast<NcclTable::Group>(static_cast<size_t>(rank) + 1);
      },
      .state =
          [](NcclTable::Group group, std::string& text) {
            text = "internal error";
            return fake->states[rank_of(group)].load();
          },
      .all_reduce = nullptr,
      .broadcast = nullptr,
      .abort = [](NcclTable::Group group) { ++fake->aborted[rank_of(group)]; },
      .destroy = [](NcclTable::Group group) { ++fake->left[rank_of(group)]; }};
};

TEST_F(NcclGroupTest, EndsOnceWhenAllIsWell) {
  expect_all_well(on_ranks(2, [](Communicator& world) {
    NcclGroup group(world, at::kCPU);
    EXPECT_EQ(rank_of(group.get()), static_cast<size_t>(world.rank()));
    group.check();
    world.barrier();
  }));
  for (const auto& aborted : fake_.aborted) EXPECT_EQ(aborted, 0);
  for (const auto& left : fake_.left) EXPECT_EQ(left, 1);
}

TEST_F(NcclGroupTest, AFailureOnOneGpuEndsBothRanksAndIsNamed) {
  const std::vector<Ended> ended = on_ranks(2, [&](Communicator& world) {
    NcclGroup group(world, at::kCPU);
    world.barrier();
    if (world.rank() == 1) fake_.states[1] = NcclTable::State::kFailed;
    wait_until_aborted(world.rank());
    try {
      group.check();
    } catch (const Error& error) {
      world.abort(error);
      throw;
    }
  });
  const std::string own = "[nccl] rank 1: a collective failed on its GPU: internal error";
  EXPECT_EQ(ended[1].what.rfind(own, 0), 0U) << ended[1].what;
  expect_ended_by(1, own, ended[0]);
  EXPECT_EQ(ended[0].code, ExitCode::kTopology);
  EXPECT_EQ(fake_.aborted[0], 1);
}

TEST_F(NcclGroupTest, ARankThatDiesWhileOthersComputeIsNamed) {
  const auto body = [&](Communicator& world) {
    auto group = std::make_unique<NcclGroup>(world, at::kCPU);
    world.barrier();
    if (world.rank() == 1) return;
    wait_until_aborted(0);
    group->check();
  };
  const std::vector<Ended> ended = on_ranks(2, body, missed_at_once());
  EXPECT_EQ(ended[0].what.rfind("[parallel] rank 1 (", 0), 0U) << ended[0].what;
  EXPECT_EQ(ended[0].code, ExitCode::kTerminated);
}

TEST_F(NcclGroupTest, AFailureWhileJoiningReachesTheOthers) {
  fake_.fails_to_join = 1;
  fake_.states[0] = NcclTable::State::kJoining;  // for ever, as NCCL itself would
  const std::vector<Ended> ended = on_ranks(2, [](Communicator& world) { NcclGroup group(world, at::kCPU); });
  EXPECT_EQ(ended[1].what, "[nccl] no way to the others");
  expect_ended_by(1, "[nccl] no way to the others", ended[0]);
  EXPECT_EQ(fake_.left[0], 1);
}

}  // namespace
}  // namespace tycho
