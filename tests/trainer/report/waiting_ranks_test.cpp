// Files that ranks leave when they break, and who waited for whom.
#include "trainer/report/waiting_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <thread>

#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/rendezvous/recent_collectives.h"

namespace tycho {
namespace {

using State = RecentCollectives::State;
using Calls = std::function<void(RecentCollectives&)>;

CollectiveCall sum_of(int64_t num_bytes) {
  return {.op = "all_reduce", .dtype = "fp32", .num_bytes = num_bytes};
}
void call(RecentCollectives& rank, int group, State state, int64_t num_bytes = 16) {
  rank.add(group, sum_of(num_bytes), state);
}

class WaitingRanksTest : public testing::Test {
 protected:
  /// Rank `rank` of three, in groups "world" (0) and "pp" (1), makes these calls and leaves its file.
  void leave(int rank, const Calls& calls, const std::string& world = "second",
             const std::string& request = "") {
    Progress progress;
    progress.set_step(4);
    RecentCollectives recent(progress);
    recent.add_group("world", {0, 1, 2});
    recent.add_group("pp", {0, 1, 2});
    calls(recent);
    recent.keep_in(folder(), {.rank = rank, .num_ranks = 3, .pid = 1, .host = "node1", .world = world});
    if (request.empty())
      recent.write("[parallel] it broke");
    else
      recent.answer(request);
  }
  std::string folder() const { return run_dir() + "/" + kCollectivesFolder; }
  std::string run_dir() const { return std::string(dir_.path()) + "/run"; }
  std::string error() const {
    try {
      waiting_ranks(run_dir());
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUnusable);
      return error.what();
    }
    return "no error";
  }

  TempDir dir_;
};

const Calls kTwoDone = [](RecentCollectives& rank) {
  for (int i = 0; i < 2; ++i) call(rank, 0, State::kDone);
};
const Calls kInTheThird = [](RecentCollectives& rank) {
  kTwoDone(rank);
  call(rank, 0, State::kFailed);
};

TEST_F(WaitingRanksTest, NamesTheRankThatDidNotComeToACollective) {
  leave(0, kInTheThird);
  leave(1, kTwoDone);
  leave(2, kInTheThird);
  const WaitingRanks waiting = waiting_ranks(run_dir());
  ASSERT_EQ(waiting.calls.size(), 1U);
  const OpenCall& open = waiting.calls.front();
  EXPECT_EQ(open.op, "all_reduce");
  EXPECT_EQ(open.group, "world");
  EXPECT_EQ(open.number, 2);
  EXPECT_EQ(open.in_it, (std::vector<int>{0, 2}));
  EXPECT_EQ(open.not_there, std::vector<int>{1});
  EXPECT_EQ(waiting.first, std::vector<int>{1});
  const std::string text = waiting_text(waiting);
  EXPECT_NE(text.find("all_reduce 2 of world (16 B of fp32, step 4)\n  in it, for up to "), std::string::npos)
      << text;
  EXPECT_NE(text.find("  has not called it: rank 1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("Look at rank 1 first: others waited for it, and it waited for nobody.\n"),
            std::string::npos)
      << text;
  const Json json = waiting_json(waiting);
  EXPECT_EQ(json.at("first"), Json::parse("[1]"));
  EXPECT_EQ(json.at("calls").at(0).at("not_there"), Json::parse("[1]"));
  EXPECT_EQ(json.at("ranks").at(2).at("in"), "all_reduce 2 of world");
}

// Rank 1 was asked while all ran, and was killed later: what it answered then is not how it ended.
TEST_F(WaitingRanksTest, AnEarlierLookAtALiveRunIsNotItsEnd) {
  leave(1, kInTheThird, "second", "look");
  leave(0, kInTheThird);
  leave(2, kInTheThird);
  const WaitingRanks waiting = waiting_ranks(run_dir());
  EXPECT_FALSE(waiting.ranks[1].has_file);
  EXPECT_EQ(waiting.first, std::vector<int>{1});
  ASSERT_EQ(waiting.ignored.size(), 1U);
  EXPECT_NE(waiting_text(waiting).find("Left out, of an earlier start or look: " + waiting.ignored[0]),
            std::string::npos);
}

TEST_F(WaitingRanksTest, WaitsForTheAnswersOfAllRanks) {
  leave(0, kTwoDone, "second", "an earlier request");
  std::thread ranks([&] {
    const std::string path = folder() + "/" + kCollectivesRequest;
    while (!std::filesystem::exists(path)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const std::string request = read_file(path);
    leave(0, kInTheThird, "second", request);
    leave(1, kTwoDone, "second", request);
    leave(2, kInTheThird, "second", request);
  });
  const WaitingRanks waiting = ask_for_collectives(run_dir(), std::chrono::seconds(60));
  ranks.join();
  EXPECT_EQ(waiting.first, std::vector<int>{1});
  EXPECT_TRUE(waiting.ignored.empty());
  EXPECT_EQ(waiting_json(waiting), waiting_json(waiting_ranks(run_dir())));
}

// Ranks answer the newest request; who asked before gets the same answers, also when some ranks had answered
// him.
TEST_F(WaitingRanksTest, SeveralMayAskAtTheSameTime) {
  const std::string path = folder() + "/" + kCollectivesRequest;
  const auto next_request = [&](const std::string& last) {
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1)))
      if (std::filesystem::exists(path))
        if (std::string request = read_file(path); request != last) return request;
  };
  WaitingRanks first, second;
  std::thread asks([&] { first = ask_for_collectives(run_dir(), std::chrono::seconds(60)); });
  const std::string one = next_request("");
  leave(0, kTwoDone, "second", one);
  std::thread asks_too([&] { second = ask_for_collectives(run_dir(), std::chrono::seconds(60)); });
  const std::string two = next_request(one);
  for (const int rank : {0, 1, 2}) leave(rank, rank == 1 ? kTwoDone : kInTheThird, "second", two);
  asks.join();
  asks_too.join();
  EXPECT_EQ(second.first, std::vector<int>{1});
  EXPECT_EQ(first.ranks.size(), 3U);
  for (const WaitingRanks& waiting : {first, second})
    for (const RankAtTheEnd& rank : waiting.ranks) EXPECT_TRUE(rank.has_file) << rank.rank;
}

TEST_F(WaitingRanksTest, SaysWhenNobodyAnswers) {
  try {
    ask_for_collectives(run_dir(), std::chrono::milliseconds(200));
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUnusable);
    EXPECT_NE(std::string(error.what()).find("no rank of " + run_dir() + " answered"), std::string::npos);
  }
  EXPECT_FALSE(std::filesystem::exists(folder() + "/" + kCollectivesRequest));
}

TEST_F(WaitingRanksTest, NamesARankThatWasKilledByItsMissingFile) {
  leave(0, kInTheThird);
  leave(2, kInTheThird);
  const WaitingRanks waiting = waiting_ranks(run_dir());
  ASSERT_EQ(waiting.ranks.size(), 3U);
  EXPECT_FALSE(waiting.ranks[1].has_file);
  EXPECT_EQ(waiting.calls.front().unknown, std::vector<int>{1});
  EXPECT_EQ(waiting.first, std::vector<int>{1});
  EXPECT_NE(waiting_text(waiting).find("rank 1    left no file: it was killed or stopped"),
            std::string::npos);
}

TEST_F(WaitingRanksTest, ShowsCallsThatDiffer) {
  leave(0, kInTheThird);
  leave(1, [](RecentCollectives& rank) {
    kTwoDone(rank);
    rank.add(0, {.op = "broadcast", .dtype = "fp32", .num_bytes = 8, .peer = 2}, State::kFailed);
  });
  leave(2, kInTheThird);
  const WaitingRanks waiting = waiting_ranks(run_dir());
  EXPECT_EQ(waiting.calls.front().different,
            (std::vector<std::string>{"rank 0 called all_reduce of 16 B of fp32",
                                      "rank 1 called broadcast of 8 B of fp32 from rank 2"}));
  EXPECT_TRUE(waiting.first.empty());
  EXPECT_NE(waiting_text(waiting).find("look at calls that differ"), std::string::npos);
}

TEST_F(WaitingRanksTest, FollowsAChainOfWaitingRanksToItsEnd) {
  // Rank 0 waits for rank 1's message, and rank 1 for rank 2, which computes.
  leave(0, [](RecentCollectives& rank) {
    rank.add(1, {.op = "recv", .dtype = "bf16", .num_bytes = 64, .peer = 1}, State::kStarted);
  });
  leave(1, [](RecentCollectives& rank) { call(rank, 0, State::kStarted); });
  leave(2, [](RecentCollectives&) {});
  const WaitingRanks waiting = waiting_ranks(run_dir());
  ASSERT_EQ(waiting.calls.size(), 2U);
  EXPECT_EQ(waiting.calls[0].group, "pp, from rank 1 to rank 0");
  EXPECT_EQ(waiting.calls[0].op, "message");
  EXPECT_EQ(waiting.calls[0].not_there, std::vector<int>{1});
  EXPECT_EQ(waiting.calls[1].not_there, (std::vector<int>{0, 2}));
  EXPECT_EQ(waiting.first, std::vector<int>{2});
}

TEST_F(WaitingRanksTest, ComparesCallsOfWhichFewAreStillKept) {
  const auto many = [](int count) {
    return [count](RecentCollectives& rank) {
      for (int i = 0; i < count; ++i) call(rank, 0, State::kDone);
    };
  };
  leave(0, many(1000));
  leave(1, many(1000));
  leave(2, many(500));
  const WaitingRanks waiting = waiting_ranks(run_dir());
  ASSERT_EQ(waiting.calls.size(), 1U);
  EXPECT_EQ(waiting.calls.front().number, 500);
  EXPECT_EQ(waiting.calls.front().done, (std::vector<int>{0, 1}));
  EXPECT_EQ(waiting.calls.front().not_there, std::vector<int>{2});
}

TEST_F(WaitingRanksTest, SaysThatNobodyWaited) {
  for (int rank = 0; rank < 3; ++rank) leave(rank, kTwoDone);
  EXPECT_NE(waiting_text(waiting_ranks(run_dir())).find("No rank waited for another one.\n"),
            std::string::npos);
}

TEST_F(WaitingRanksTest, LeavesOutFilesOfAnEarlierStart) {
  leave(1, kInTheThird, "first");
  leave(0, kTwoDone);
  leave(2, kTwoDone);
  const WaitingRanks waiting = waiting_ranks(run_dir());
  EXPECT_FALSE(waiting.ranks[1].has_file);
  ASSERT_EQ(waiting.ignored.size(), 1U);
  EXPECT_NE(waiting.ignored[0].find("rank-00001.json"), std::string::npos);
  EXPECT_NE(waiting_text(waiting).find("Left out, of an earlier start or look: "), std::string::npos);
}

TEST_F(WaitingRanksTest, RefusesFoldersAndFilesThatSayNothing) {
  EXPECT_NE(error().find("no rank left its last collectives in " + folder()), std::string::npos);
  make_dirs(real_files(), folder());
  for (const char* text : {"{", "[]", "{}", R"({"world": "x", "time": 1, "rank": "no"})",
                           R"({"world": "x", "time": 1, "rank": 0, "num_ranks": 2000000000, "host": "",
                             "doing": "", "cause": "", "groups": [], "calls": []})",
                           R"({"world": "x", "time": 1, "rank": 0, "num_ranks": 2, "host": "", "doing": "",
                             "cause": "", "groups": [], "calls": [{"group": 3, "state": "done", "verb": ""}]})"}) {
    write_file_atomically(real_files(), folder() + "/rank-00000.json", text);
    EXPECT_NE(error(), "no error") << text;
    EXPECT_NE(error().find("collectives"), std::string::npos) << error();
  }
}

}  // namespace
}  // namespace tycho
