// Saves that several ranks write together: whatever fails on whichever rank, what was committed stays.
#include "trainer/loop/saver.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "tests/trainer/base/faulty_files.h"
#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/loop/numbered_save.h"
#include "tests/trainer/parallel/thread_world.h"
#include "trainer/optim/optimizer.h"
#include "trainer/parallel/sharded_units.h"

namespace tycho {
namespace {

/// Two ranks of a tiny model whose numbers are the step.
class SharedSave : public testing::Test {
 protected:
  static std::vector<int> all_ranks(const Communicator& world) {
    std::vector<int> ranks(static_cast<size_t>(world.size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }

  struct Rank {
    Rank(Communicator& world, const std::string& dir, FileOps& files, bool async)
        : units(numbered_units(), at::kFloat, at::kCPU, UnitUse::kTrain, {.num_ranks = world.size()},
                {world, *alone}),
          optimizer(make_optimizer(numbered_optimizer(), units.owned())),
          saver(world.rank() == 0 ? std::optional<CheckpointStore>(std::in_place, files, dir, 0, 1)
                                  : std::nullopt,
                CheckpointConfig{.async = async}, all_ranks(world), files, world, reporter) {}
    void save(int64_t step) {
      fill_with_step(units.owned(), *optimizer, step);
      saver.save({.step = step}, units.owned(), *optimizer);
      while (saver.take_news().is_null() && !saver.must_retry() && ++boundaries < 30'000) {
        saver.poll();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      saver.wait(/*last=*/false);
    }

    std::unique_ptr<Communicator> alone = make_world_of_one();
    ShardedUnits units;
    std::unique_ptr<Optimizer> optimizer;
    Reporter reporter;
    Saver saver;
    int boundaries = 0;
  };

  TempDir dir_;
};

TEST_F(SharedSave, EachRankWritesWhatItOwnsOnce) {
  for (const bool async : {true, false}) {
    const std::string dir = dir_ / (async ? "async" : "at-once");
    ThreadWorld(3).run([&](Communicator& world) {
      Rank rank(world, dir, real_files(), async);
      rank.save(1);
      rank.save(2);
      EXPECT_TRUE(rank.saver.has_saved(2));
    });
    const std::vector<CheckpointInfo> all = list_checkpoints(dir);
    ASSERT_EQ(all.size(), 2U);
    for (const CheckpointInfo& info : all) {
      expect_whole(info);
      for (const char* name : {"rank-00000.safetensors", "rank-00001.safetensors", "rank-00002.safetensors"})
        EXPECT_TRUE(std::filesystem::exists(info.path + "/" + name)) << name;
    }
  }
}

TEST_F(SharedSave, AFailureOfAnyRankLosesNothingThatWasCommitted) {
  for (int faulty_rank = 0; faulty_rank < 2; ++faulty_rank)
    for (int call = 1, made = 1 << 20; call <= made; ++call) {
      const std::string dir = dir_ / fmt::format("{}-{}", faulty_rank, call);
      ThreadWorld(2).run([&](Communicator& world) {
        { Rank(world, dir, real_files(), true).save(1); }
        // Counts its calls first; then each of them fails in turn.
        FaultyFiles mine(call == 1 ? 0 : call - 1, /*stay_broken=*/true);
        FileOps& files = world.rank() == faulty_rank ? static_cast<FileOps&>(mine) : real_files();
        Rank(world, dir, files, true).save(2);
        if (world.rank() == faulty_rank && call == 1) made = mine.calls() + 1;
        world.barrier();
        Rank(world, dir, real_files(), true).save(3);
      });
      std::set<int64_t> steps;
      for (const CheckpointInfo& info : list_checkpoints(dir)) {
        expect_whole(info);
        steps.insert(info.step);
      }
      EXPECT_TRUE(steps.contains(1) && steps.contains(3)) << "rank " << faulty_rank << ", call " << call;
      std::filesystem::remove_all(dir);
    }
}

TEST_F(SharedSave, WeightsOfAnyRankThatAreNotFiniteAreNotSaved) {
  std::mutex mutex;
  std::vector<std::string> said;
  ThreadWorld(2).run([&](Communicator& world) {
    Rank rank(world, dir_ / "nan", real_files(), true);
    if (world.rank() == 1) Tensor(rank.units.owned()[1].params)[0].fill_(NAN);
    try {
      rank.saver.save({.step = 1}, rank.units.owned(), *rank.optimizer);
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      said.push_back(error.what());
    }
  });
  ASSERT_EQ(said.size(), 2U);
  for (const std::string& one : said) EXPECT_NE(one.find("not finite"), std::string::npos) << one;
  EXPECT_TRUE(list_checkpoints(dir_ / "nan").empty());
}

TEST_F(SharedSave, ASaveThatNobodyFinishesIsGivenUp) {
  ThreadWorld(2).run([&](Communicator& world) {
    Rank rank(world, dir_ / "left", real_files(), true);
    rank.saver.save({.step = 1}, rank.units.owned(), *rank.optimizer);
    // The run ends here, with an error elsewhere.
  });
  EXPECT_TRUE(list_checkpoints(dir_ / "left").empty());
}

}  // namespace
}  // namespace tycho
