// The pool of decompressed shards: how much it holds, what stays, what goes, and several threads.
#include "trainer/data/mds/shard_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "tests/trainer/data/data_testing.h"

namespace tycho {
namespace {

using testing::expect_error;

constexpr size_t kBytes = 1000;
constexpr int64_t kSamples = 50;

class ShardMemoryTest : public ::testing::Test {
 protected:
  ShardMemory::Shard shard(size_t index, size_t num_bytes = kBytes) const {
    return {source_, index, kSamples, num_bytes};
  }
  bool bring(const ShardMemory::Shard& shard) {
    return memory_.bring(shard, [&](std::span<char> raw) {
      ++num_fills_[shard.index];
      std::fill(raw.begin(), raw.end(), static_cast<char>('a' + shard.index));
    });
  }
  /// A sample of a shard; false when the shard is not in memory. Its bytes must be those it was filled with.
  bool read(const ShardMemory::Shard& shard) {
    const auto raw = memory_.read(shard, {});
    if (!raw) return false;
    EXPECT_EQ(raw->size(), shard.num_bytes);
    EXPECT_EQ(std::ranges::count(*raw, static_cast<char>('a' + shard.index)), std::ssize(*raw));
    return true;
  }
  /// As a reader does.
  bool bring_and_read(const ShardMemory::Shard& shard) {
    if (read(shard) || (bring(shard) && read(shard))) return true;
    memory_.read_elsewhere();
    return false;
  }

  static constexpr int64_t kLimit = 2500;  // two shards
  ShardMemory memory_{kLimit};
  int source_ = memory_.add_source();
  std::map<size_t, int> num_fills_;
};

TEST_F(ShardMemoryTest, ReadInOrderEveryShardIsFilledOnce) {
  for (size_t index = 0; index < 20; ++index) {
    for (int64_t sample = 0; sample < 2 * kSamples; ++sample) {
      ASSERT_TRUE(bring_and_read(shard(index)));
      if (sample == 80) {
        EXPECT_TRUE(bring(shard(index + 1))) << "ahead";
      }
    }
    EXPECT_LE(memory_.held_bytes(), kLimit);
  }
  for (size_t index = 0; index < 20; ++index) EXPECT_EQ(num_fills_[index], 1) << index;
}

TEST_F(ShardMemoryTest, ShardsWhoseSamplesAreStillReadStayAndOthersFindNoRoom) {
  for (int64_t round = 0; round < 1000; ++round)
    for (size_t index = 0; index < 4; ++index) EXPECT_EQ(bring_and_read(shard(index)), index < 2) << round;
  EXPECT_EQ(num_fills_, (std::map<size_t, int>{{0, 1}, {1, 1}}));
  EXPECT_EQ(memory_.held_bytes(), 2 * int64_t{kBytes});
}

TEST_F(ShardMemoryTest, OneThatIsNeverReadGoesAfterAMillionSamples) {
  EXPECT_TRUE(bring(shard(0)));
  EXPECT_TRUE(bring(shard(1)));
  for (int sample = 0; sample < 1 << 20; ++sample) memory_.read_elsewhere();
  EXPECT_FALSE(bring(shard(2)));
  memory_.read_elsewhere();
  EXPECT_TRUE(bring(shard(2)));
}

TEST_F(ShardMemoryTest, OneThatWasBroughtStaysUntilItIsRead) {
  EXPECT_TRUE(bring(shard(0)));
  for (int64_t round = 0; round < 1000; ++round) EXPECT_TRUE(bring_and_read(shard(1)));
  EXPECT_FALSE(bring(shard(2))) << "the others are needed";
  EXPECT_TRUE(read(shard(0)));
}

TEST_F(ShardMemoryTest, OneOfWhichOnlyAPartWasReadDoesNotComeBack) {
  EXPECT_TRUE(bring_and_read(shard(0)));
  for (int64_t round = 0; round < 100; ++round) EXPECT_TRUE(bring_and_read(shard(1)));
  EXPECT_TRUE(bring_and_read(shard(2))) << "in its place";
  EXPECT_FALSE(read(shard(0)));
  EXPECT_FALSE(bring(shard(0))) << "it was decompressed for one sample already";
  for (int64_t round = 0; round < 100; ++round) EXPECT_TRUE(bring_and_read(shard(2)));
  EXPECT_FALSE(bring(shard(0)));
  for (int64_t round = 0; round < 100; ++round) EXPECT_TRUE(bring_and_read(shard(3)));
  EXPECT_TRUE(bring(shard(1))) << "all of its samples were read";
}

TEST_F(ShardMemoryTest, TheNextShardGetsTheMemoryOfTheLast) {
  EXPECT_TRUE(bring_and_read(shard(0, 2400)));
  const char* const first = memory_.read(shard(0, 2400), {})->data();
  EXPECT_FALSE(bring(shard(1, 2000))) << "it is being read";
  for (int64_t round = 0; round < 100; ++round) EXPECT_TRUE(read(shard(0, 2400)));
  for (int64_t round = 0; round < 100; ++round) memory_.read_elsewhere();
  EXPECT_FALSE(bring(shard(1, 2000))) << "somebody may still look at it";
  EXPECT_FALSE(memory_.read(shard(9), {}));
  EXPECT_TRUE(bring(shard(1, 2000)));
  EXPECT_EQ(memory_.read(shard(1, 2000), {})->data(), first);
  EXPECT_EQ(memory_.held_bytes(), 2400);
}

TEST_F(ShardMemoryTest, WhatIsLargerThanAllOfItIsLeftToFiles) {
  EXPECT_FALSE(bring(shard(0, 2501)));
  EXPECT_TRUE(bring(shard(0, 2500)));
}

TEST_F(ShardMemoryTest, NeverHoldsMoreThanItsLimitWhateverIsRead) {
  std::mt19937 random(7);
  const int sources[] = {source_, memory_.add_source()};
  int num_read = 0;
  for (int i = 0; i < 100000; ++i) {
    // Mostly a few shards, which change over time.
    const size_t index = static_cast<size_t>(i) / 5000 + random() % 4 * (random() % 10 == 0 ? 3 : 1);
    const ShardMemory::Shard one{sources[random() % 2], index % 26, kSamples, 100 + index % 26 * 80};
    num_read += random() % 3 == 0 ? bring(one) : bring_and_read(one);
    ASSERT_LE(memory_.held_bytes(), kLimit);
  }
  EXPECT_GT(num_read, 20000);
}

TEST_F(ShardMemoryTest, AShardThatIsReadWhileOtherThreadsBringMoreIsWholeAndStays) {
  std::atomic<int> num_fills = 0;
  const auto bring_one = [&](size_t index) {
    return memory_.bring(shard(index), [&](std::span<char> raw) {
      ++num_fills;
      std::fill(raw.begin(), raw.end(), static_cast<char>(index));
    });
  };
  int num_brought = 0;
  {
    std::atomic<size_t> now = 0;
    std::vector<std::jthread> ahead;
    for (int i = 0; i < 3; ++i)
      ahead.emplace_back([&](const std::stop_token& stop) {
        while (!stop.stop_requested()) bring_one(now + 1);
      });
    for (; now < 300; ++now) {
      if (!bring_one(now)) continue;  // another thread was late, and has brought what is not read any more
      ++num_brought;
      for (int64_t sample = 0; sample < kSamples; ++sample) {
        const auto raw = memory_.read(shard(now), {});
        ASSERT_TRUE(raw);
        ASSERT_EQ(std::ranges::count(*raw, static_cast<char>(now.load())), std::ssize(*raw));
      }
      for (int64_t sample = 0; sample < 100; ++sample) memory_.read(shard(now), {});
    }
  }
  EXPECT_GE(num_brought, 2);
  EXPECT_GE(num_fills, num_brought);
  EXPECT_LE(memory_.held_bytes(), kLimit);
}

TEST_F(ShardMemoryTest, AFillThatFailsReachesItsCallerAndTheOthersTryThemselves) {
  const auto damaged = [](std::span<char>) { fail(ExitCode::kUnusable, "damaged"); };
  for (int i = 0; i < 5; ++i)
    expect_error(ExitCode::kUnusable, {"damaged"}, [&] { memory_.bring(shard(0), damaged); });
  EXPECT_FALSE(read(shard(0)));
  EXPECT_TRUE(bring_and_read(shard(0)));
  EXPECT_EQ(memory_.held_bytes(), int64_t{kBytes}) << "its memory was used again";
}

TEST_F(ShardMemoryTest, AStopEndsTheWaitForAnotherThread) {
  std::atomic<bool> is_filling = false, may_end = false;
  std::jthread other([&] {
    memory_.bring(shard(0), [&](std::span<char>) {
      is_filling = true;
      is_filling.notify_all();
      may_end.wait(false);
    });
  });
  is_filling.wait(false);
  EXPECT_TRUE(bring(shard(0))) << "somebody does";
  std::stop_source stop;
  std::jthread stopper([&] { stop.request_stop(); });
  expect_error(ExitCode::kTerminated, {"stopped"}, [&] { memory_.read(shard(0), stop.get_token()); });
  may_end = true;
  may_end.notify_all();
}

}  // namespace
}  // namespace tycho
