// Ranks that are stuck, here threads, leave their last collectives for someone who asks.
#include "trainer/rendezvous/meet/answered_requests.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <latch>
#include <set>
#include <string>
#include <thread>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/rendezvous/rank_threads.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/rendezvous/recent_collectives.h"

namespace tycho {
namespace {

using namespace std::chrono_literals;

/// Waits until `holds` does, for a busy machine's time.
bool comes_true(const std::function<bool()>& holds) {
  for (int i = 0; i < 6000 && !holds(); ++i) std::this_thread::sleep_for(10ms);
  return holds();
}

class AnsweredRequestsTest : public testing::Test {
 protected:
  static constexpr int kRanks = 3;

  AnsweredRequestsTest() { std::filesystem::create_directories(folder_); }

  /// All ranks are there; the main thread of each is stuck outside of the library until this returns.
  void while_ranks_hang(const std::function<void()>& ask) {
    std::atomic<bool> may_end = false;
    std::atomic<int> num_stuck = 0;
    std::thread asks([&] {
      EXPECT_TRUE(comes_true([&] { return num_stuck == kRanks; }));
      ask();
      may_end = true;
    });
    expect_all_well(with_peers(kRanks, [&](Peers& peers) {
      peers.keep_collectives_in(folder_);
      RecentCollectives& calls = peers.collectives();
      const int world = calls.add_group("world", {0, 1, 2});
      if (peers.rank() != 1) calls.add(world, {.op = "barrier"}, RecentCollectives::State::kStarted);
      ++num_stuck;
      EXPECT_TRUE(comes_true([&] { return may_end.load(); }));
    }));
    asks.join();
  }

  /// The same, and the main thread of `waits` is in a collective all the while, if it is a rank.
  void while_a_rank_waits(int waits, double hang_s, const std::function<void()>& look) {
    std::latch have_met(kRanks + 1);
    std::atomic<bool> may_end = false;
    std::thread looks([&] {
      have_met.arrive_and_wait();
      look();
      may_end = true;
    });
    expect_all_well(at_places(kRanks, [&](const RankInfo& place) {
      Progress progress;
      MeetOptions options{.hang_s = hang_s};
      options.progress = &progress;
      options.beat_s = 0.05;
      const auto peers = rendezvous(place, options);
      peers->keep_collectives_in(folder_);
      have_met.arrive_and_wait();
      const auto is_over = [&] { return may_end.load(); };
      if (place.rank != waits) {
        EXPECT_TRUE(comes_true(is_over));
        return;
      }
      const InCollective collective("all_reduce", progress);
      EXPECT_TRUE(comes_true(is_over));
    }));
    looks.join();
  }

  /// What the ranks have left of their own accord: the request, which is the same in all files.
  std::string unasked() const {
    std::set<std::string> requests;
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::string path = fmt::format("{}/rank-0000{}.json", folder_, rank);
      requests.insert(std::filesystem::exists(path)
                          ? parse_json(read_file(path), path).at("request").get<std::string>()
                          : "");
    }
    return requests.size() == 1 ? *requests.begin() : "";
  }

  void ask(const std::string& request) const { write_file_atomically(real_files(), request_, request); }
  bool have_answered(const std::string& request) const {
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::string path = fmt::format("{}/rank-0000{}.json", folder_, rank);
      if (!std::filesystem::exists(path)) return false;
      const Json file = parse_json(read_file(path), path);
      EXPECT_EQ(file.at("rank"), rank);
      EXPECT_EQ(file.at("calls").size(), rank == 1 ? 0U : 1U);
      if (file.at("request") != request) return false;
    }
    return true;
  }

  const TempDir dir_;
  const std::string folder_ = dir_ / "collectives", request_ = folder_ + "/" + kCollectivesRequest;
};

TEST_F(AnsweredRequestsTest, EveryRankAnswersAsOftenAsItIsAsked) {
  while_ranks_hang([&] {
    for (const char* request : {"first", "second"}) {
      ask(request);
      EXPECT_TRUE(comes_true([&] { return have_answered(request); })) << request;
      EXPECT_FALSE(std::filesystem::exists(request_));
    }
  });
}

TEST_F(AnsweredRequestsTest, ARankThatWaitsTooLongHasAllLeaveTheirsOnce) {
  for (int waits = 0; waits < kRanks; ++waits) {
    while_a_rank_waits(waits, 0.2, [&] {
      EXPECT_TRUE(comes_true([&] { return !unasked().empty(); })) << "rank " << waits;
      const std::string first = unasked();
      std::this_thread::sleep_for(600ms);
      EXPECT_EQ(unasked(), first);
      // It can still be asked.
      ask("by someone");
      EXPECT_TRUE(comes_true([&] { return unasked() == "by someone"; }));
    });
    for (const auto& entry : std::filesystem::directory_iterator(folder_))
      std::filesystem::remove(entry.path());
  }
}

TEST_F(AnsweredRequestsTest, WithoutALongWaitNoneIsLeft) {
  while_a_rank_waits(1, 60, [] { std::this_thread::sleep_for(700ms); });
  while_a_rank_waits(-1, 0.2, [] { std::this_thread::sleep_for(700ms); });
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(AnsweredRequestsTest, WhatIsNoRequestIsLeftAloneAndTheNextOneIsAnswered) {
  while_ranks_hang([&] {
    ask(std::string(65, 'x'));
    std::this_thread::sleep_for(1200ms);
    EXPECT_TRUE(std::filesystem::remove(request_));
    EXPECT_TRUE(std::filesystem::create_directory(request_));
    std::this_thread::sleep_for(1200ms);
    EXPECT_TRUE(std::filesystem::remove(request_));
    std::filesystem::create_symlink("/etc/hostname", request_);
    std::this_thread::sleep_for(1200ms);
    EXPECT_TRUE(std::filesystem::remove(request_));
    EXPECT_TRUE(std::filesystem::is_empty(folder_));
    ask("right");
    EXPECT_TRUE(comes_true([&] { return have_answered("right"); }));
  });
}

}  // namespace
}  // namespace tycho
