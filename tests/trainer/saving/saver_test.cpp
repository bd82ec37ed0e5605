// Saves that several ranks write together: whatever fails on whichever rank, what was committed stays.
#include "trainer/saving/saver.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <functional>
#include <latch>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "tests/trainer/base/faulty_files.h"
#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/comm/thread_world.h"
#include "tests/trainer/train/numbered_save.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/optim/optimizer.h"
#include "trainer/sharding/sharded_units.h"

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
    Rank(Communicator& world, const std::string& dir, FileOps& files, bool async, double max_lost_s = 600)
        : units(numbered_units(), at::kFloat, at::kCPU, UnitUse::kTrain, {.num_ranks = world.size()},
                {[this, &world](const UnitSpec&) -> UnitGroup {
                  return {world, *alone};
                }}),
          optimizer(make_optimizer(numbered_optimizer(), units.owned())),
          average(numbered_average(units.owned())),
          saver(world.rank() == 0 ? std::optional<CheckpointStore>(std::in_place, files, dir, 0, 1)
                                  : std::nullopt,
                CheckpointConfig{.async = async, .max_lost = {max_lost_s, DurationUnit::kSecond}},
                all_ranks(world), files, world, reporter) {}
    void save(int64_t step) {
      fill_with_step(units.owned(), *optimizer, average, step);
      saver.save({.step = step}, units.owned(), *optimizer, &average);
      while (saver.take_saved().empty() && !saver.must_retry() && ++boundaries < 30'000) {
        saver.poll();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      saver.wait(/*last=*/false);
    }

    std::unique_ptr<Communicator> alone = make_world_of_one();
    ShardedUnits units;
    std::unique_ptr<Optimizer> optimizer;
    WeightAverage average;
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

/// Rank 0's disk: no file can be created, and before a folder goes, `before` is called.
class NoRoom : public FileOps {
 public:
  explicit NoRoom(std::function<void()> before = [] {}) : before_(std::move(before)) {}
  std::unique_ptr<OutputFile> create(const std::string& path, bool, Readers) override {
    fail(ExitCode::kStorage, "[files] cannot write {}: no space is left", path);
  }
  void remove_dir(const std::string& path) override {
    before_();
    FileOps::remove_dir(path);
  }

 private:
  std::function<void()> before_;
};

/// Another rank's disk: slow to create a file, unless it is told that it is time.
class Late : public FileOps {
 public:
  explicit Late(std::latch& time) : time_(time) {}
  std::unique_ptr<OutputFile> create(const std::string& path, bool direct, Readers readers) override {
    for (int i = 0; i < 1000 && !time_.try_wait(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return FileOps::create(path, direct, readers);
  }

 private:
  std::latch& time_;
};

TEST_F(SharedSave, WhatALateRankWritesOfAFailedSaveIsRemovedToo) {
  std::latch time(1);
  ThreadWorld(2).run([&](Communicator& world) {
    NoRoom full([&] {
      time.count_down();
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    });
    Late late(time);
    Rank(world, dir_.path(), world.rank() == 0 ? static_cast<FileOps&>(full) : late, true).save(1);
  });
  EXPECT_TRUE(std::filesystem::is_empty(dir_.path()));
}

TEST_F(SharedSave, ASignalToAnyRankEndsTheWaitForRoom) {
  for (int told = 0; told < 2; ++told) {
    std::vector<std::string> said(2);
    const auto start = std::chrono::steady_clock::now();
    ThreadWorld(2).run([&](Communicator& world) {
      NoRoom full;
      Rank rank(world, dir_.path(), full, true);
      rank.save(1);
      ASSERT_TRUE(rank.saver.must_retry());
      const std::atomic<int> stop = world.rank() == told ? SIGTERM : 0;
      try {
        rank.saver.wait_before_retry(stop);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::kStorage);
        said[static_cast<size_t>(world.rank())] = error.what();
      }
    });
    EXPECT_NE(said[0].find("stopped before the last checkpoint could be written"), std::string::npos)
        << said[0];
    EXPECT_EQ(said[1], "") << "it hears of it in the next collective";
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20))
        << "the next try is in 30 s";
  }
}

TEST_F(SharedSave, RanksWaitForRoomTogetherAndTryAgain) {
  ThreadWorld(2).run([&](Communicator& world) {
    FaultyFiles once(world.rank() == 0 ? 5 : 0);
    Rank rank(world, dir_.path(), once, true, /*max_lost_s=*/4);
    rank.save(1);
    ASSERT_TRUE(rank.saver.must_retry());
    const std::atomic<int> stop = 0;
    rank.saver.wait_before_retry(stop);
    rank.save(1);
    EXPECT_TRUE(rank.saver.has_saved(1));
  });
  expect_whole(find_checkpoint(dir_.path()));
}

TEST_F(SharedSave, WeightsOfAnyRankThatAreNotFiniteAreNotSaved) {
  std::mutex mutex;
  std::vector<std::string> said;
  ThreadWorld(2).run([&](Communicator& world) {
    Rank rank(world, dir_ / "nan", real_files(), true);
    if (world.rank() == 1) Tensor(rank.units.owned()[1].params)[0].fill_(NAN);
    try {
      const Json code = {{"at", "recipes/x.lua:7"}, {"hash", std::string(32, '0')}};
      rank.saver.save({.step = 1, .recipe = {{"optimizer", {{"code", code}}}}}, rank.units.owned(),
                      *rank.optimizer);
    } catch (const Error& error) {
      const std::lock_guard lock(mutex);
      said.push_back(error.what());
    }
  });
  ASSERT_EQ(said.size(), 2U);
  for (const std::string& one : said) {
    EXPECT_NE(one.find("weights after step 1 are not finite and were not saved: training has diverged"),
              std::string::npos)
        << one;
    EXPECT_NE(one.find("optimizer (recipes/x.lua:7)"), std::string::npos) << one;
  }
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
