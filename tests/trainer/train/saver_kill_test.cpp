// A save that ranks write together, with a rank, or all of them, killed at each change of the file system:
// what was committed before is there, whole, and the next start saves again.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <optional>
#include <set>
#include <thread>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/checkpoint/dying_files.h"
#include "tests/trainer/rendezvous/rank_threads.h"
#include "tests/trainer/train/numbered_save.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/comm/tcp.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/optim/optimizer.h"
#include "trainer/rendezvous/meet/rendezvous.h"
#include "trainer/saving/saver.h"
#include "trainer/sharding/sharded_units.h"

namespace tycho {
namespace {

constexpr int kRanks = 2;

/// Kills the process where DyingFiles throws; half of a write is done before.
class KillingFiles final : public DyingFiles {
 public:
  explicit KillingFiles(int at) : DyingFiles(at, /*half=*/true) {}

 private:
  void die() override { kill(getpid(), SIGKILL); }
};

/// Saves a step whose numbers are the step.
void save(Communicator& world, const std::string& dir, FileOps& files, int64_t step) {
  const auto alone = make_world_of_one();
  ShardedUnits units(numbered_units(), at::kFloat, at::kCPU, UnitUse::kTrain, {.num_ranks = world.size()},
                     {[&](const UnitSpec&) -> UnitGroup {
                       return {world, *alone};
                     }});
  const auto optimizer = make_optimizer(numbered_optimizer(), units.owned());
  WeightAverage average = numbered_average(units.owned());
  std::vector<int> all_ranks(static_cast<size_t>(world.size()));
  std::iota(all_ranks.begin(), all_ranks.end(), 0);
  std::optional<CheckpointStore> store;
  if (world.rank() == 0) store.emplace(files, dir, 0, 1);
  Reporter reporter;
  Saver saver(std::move(store), CheckpointConfig{.async = false}, all_ranks, files, world, reporter);
  fill_with_step(units.owned(), *optimizer, average, step);
  saver.save({.step = step}, units.owned(), *optimizer, &average);
  saver.wait(/*last=*/true);
}

class SharedSaveKilled : public testing::Test {
 protected:
  /// A process for each rank, of which one saves through `files_of`; how many were killed. The parent has no
  /// thread when it forks.
  int run_ranks(const std::function<void(Communicator&, int rank)>& body) {
    const ReservedPort port;
    std::vector<pid_t> children;
    for (int rank = 0; rank < kRanks; ++rank) {
      const pid_t child = fork();
      if (child != 0) {
        children.push_back(child);
        continue;
      }
      try {
        auto world =
            make_tcp_world(rendezvous(test_place(rank, kRanks, port.number()), {}), /*timeout_s=*/60);
        body(*world, rank);
        _exit(0);
      } catch (const std::exception&) {  // the other rank has gone
        _exit(1);
      }
    }
    int num_killed = 0;
    for (const pid_t child : children) {
      int status = 0;
      EXPECT_EQ(waitpid(child, &status, 0), child);
      num_killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 1 : 0;
    }
    return num_killed;
  }

  /// Every checkpoint that is there can be read, with the numbers of its step.
  std::set<int64_t> whole_steps(const std::string& dir) const {
    std::set<int64_t> steps;
    for (const CheckpointInfo& info : list_checkpoints(dir)) {
      expect_whole(info);
      steps.insert(info.step);
    }
    return steps;
  }

  /// Calls of a save that nobody kills, on a rank.
  int calls_of(int rank) {
    const std::string dir = dir_ / fmt::format("counted-{}", rank),
                      told = dir_ / fmt::format("calls-{}", rank);
    EXPECT_EQ(run_ranks([&](Communicator& world, int own) {
                save(world, dir, real_files(), 1);
                KillingFiles files(0);
                save(world, dir, files, 2);
                if (own == rank) std::ofstream(told) << files.calls();
              }),
              0);
    int calls = 0;
    std::ifstream(told) >> calls;
    return calls;
  }

  TempDir dir_;
};

TEST_F(SharedSaveKilled, AtEveryChangeOfTheFileSystemLosesNothingThatWasCommitted) {
  at::set_num_threads(1);
  for (int rank = 0; rank < kRanks; ++rank) {
    const int calls = calls_of(rank);
    ASSERT_GE(calls, 4) << "rank " << rank;
    for (int call = 1; call <= calls; ++call) {
      SCOPED_TRACE(fmt::format("rank {} killed at call {} of {}", rank, call, calls));
      const std::string dir = dir_ / fmt::format("{}-{}", rank, call);
      const int killed = run_ranks([&](Communicator& world, int own) {
        save(world, dir, real_files(), 1);
        KillingFiles files(own == rank ? call : 0);
        save(world, dir, files, 2);
      });
      EXPECT_EQ(killed, 1);
      const std::set<int64_t> left = whole_steps(dir);
      EXPECT_TRUE(left.contains(1));
      EXPECT_EQ(run_ranks([&](Communicator& world, int) { save(world, dir, real_files(), 3); }), 0);
      EXPECT_TRUE(whole_steps(dir).contains(3));
      std::filesystem::remove_all(dir);
    }
  }
}

}  // namespace
}  // namespace tycho
