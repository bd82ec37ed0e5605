// Ranks that are stuck, here threads, leave their last collectives for someone who asks.
#include "trainer/rendezvous/meet/answered_requests.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
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
      if (peers.rank() != 1) calls.add(world, {.verb = "barrier"}, RecentCollectives::State::kStarted);
      ++num_stuck;
      EXPECT_TRUE(comes_true([&] { return may_end.load(); }));
    }));
    asks.join();
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
