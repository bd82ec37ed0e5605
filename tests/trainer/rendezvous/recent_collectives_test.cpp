// What is kept of a rank's last collectives, and the file that it leaves.
#include "trainer/rendezvous/recent_collectives.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

using State = RecentCollectives::State;

constexpr CollectiveCall kSum = {.op = "all_reduce", .dtype = "fp32", .num_bytes = 16};

class RecentCollectivesTest : public testing::Test {
 protected:
  Json call(size_t i) const { return recent_.json().at("calls").at(i); }

  TempDir dir_;
  Progress progress_;
  RecentCollectives recent_{progress_};
};

TEST_F(RecentCollectivesTest, KeepsTheNewestAndCountsAll) {
  const int world = recent_.add_group("world", {0, 1});
  for (int i = 0; i < 100; ++i) recent_.set_state(recent_.add(world, kSum, State::kStarted), State::kDone);
  const Json json = recent_.json();
  EXPECT_EQ(json.at("num_calls"), 100);
  EXPECT_EQ(json.at("groups").at(0).at("calls"), 100);
  ASSERT_EQ(json.at("calls").size(), RecentCollectives::kKept);
  for (size_t i = 0; i < RecentCollectives::kKept; ++i) {
    EXPECT_EQ(json.at("calls").at(i).at("sequence"), 36 + i);
    EXPECT_EQ(json.at("calls").at(i).at("number"), 36 + i);
    EXPECT_EQ(json.at("calls").at(i).at("state"), "done");
  }
}

TEST_F(RecentCollectivesTest, SaysWhatTheCallWasAndWhatItsRankWasDoing) {
  const int world = recent_.add_group("world/0.1", {3, 5});
  recent_.name_group(world, "dp_shard");
  recent_.set_coordinates({{"pp", 1}, {"dp_shard", 0}});
  progress_.set_step(12);
  {
    const InPhase phase("in callback with_a_name_that_is_far_too_long_to_keep", progress_);
    const ForUnit unit("model.layers.3");
    recent_.add(world, {.op = "broadcast", .dtype = "bf16", .num_bytes = 32, .peer = 1}, State::kStarted);
  }
  recent_.add(world, {.op = "barrier"}, State::kQueued);
  const Json json = recent_.json(), first = call(0), second = call(1);
  EXPECT_EQ(json.at("groups").at(0).at("name"), "dp_shard");
  EXPECT_EQ(json.at("groups").at(0).at("ranks"), Json::parse("[3, 5]"));
  EXPECT_EQ(json.at("coordinates"), Json::parse(R"({"pp": 1, "dp_shard": 0})"));
  EXPECT_EQ(json.at("doing"), "step 12, starting");
  EXPECT_EQ(first.at("verb"), "broadcast");
  EXPECT_EQ(first.at("dtype"), "bf16");
  EXPECT_EQ(first.at("num_bytes"), 32);
  EXPECT_EQ(first.at("peer"), 5) << "a rank of the world";
  EXPECT_EQ(first.at("step"), 12);
  EXPECT_EQ(first.at("phase"), "in callback with_a_name_that_is");
  EXPECT_EQ(first.at("unit"), "model.layers.3");
  EXPECT_EQ(first.at("state"), "started");
  EXPECT_GE(first.at("took_s"), 0);
  EXPECT_EQ(second.at("state"), "queued");
  EXPECT_FALSE(second.contains("unit") || second.contains("peer") || second.contains("took_s"));
}

TEST_F(RecentCollectivesTest, AChangeOfACallThatIsNoLongerKeptChangesNothing) {
  const int world = recent_.add_group("world", {0, 1});
  const uint64_t old = recent_.add(world, kSum, State::kQueued);
  for (size_t i = 0; i < RecentCollectives::kKept; ++i) recent_.add(world, kSum, State::kStarted);
  recent_.set_state(old, State::kFailed);
  const Json kept = recent_.json();
  for (const Json& one : kept.at("calls")) EXPECT_EQ(one.at("state"), "started");
}

TEST_F(RecentCollectivesTest, WhatAGpuWasGivenIsDoneWhenTheGpuIs) {
  const int world = recent_.add_group("world", {0, 1});
  recent_.add(world, kSum, State::kOnDevice);
  recent_.add(world, kSum, State::kQueued);
  EXPECT_EQ(call(0).at("state"), "on device");
  recent_.device_is_done();
  EXPECT_EQ(call(0).at("state"), "done");
  EXPECT_EQ(call(1).at("state"), "queued");
}

TEST_F(RecentCollectivesTest, CountsMessagesByTheOtherRankAndTheirWay) {
  const int world = recent_.add_group("world", {4, 6, 8});
  const auto message = [&](const char* verb, int peer) {
    recent_.add(world, {.op = verb, .dtype = "fp32", .num_bytes = 4, .peer = peer}, State::kDone);
  };
  for (const char* verb : {"send", "send", "recv"}) message(verb, 1);
  message("send", 2);
  recent_.add(world, kSum, State::kDone);
  const Json group = recent_.json().at("groups").at(0);
  EXPECT_EQ(group.at("calls"), 1) << "messages do not count as collectives";
  EXPECT_EQ(group.at("messages"), Json::parse(R"([{"verb": "send", "peer": 6, "calls": 2},
    {"verb": "recv", "peer": 6, "calls": 1}, {"verb": "send", "peer": 8, "calls": 1}])"));
  EXPECT_EQ(call(1).at("number"), 1);
  EXPECT_EQ(call(2).at("number"), 0);
}

TEST_F(RecentCollectivesTest, LeavesAFileWhereItIsTold) {
  recent_.write("nowhere to write to");
  const std::string folder = std::string(dir_.path()) + "/run/collectives";
  recent_.keep_in(folder, {.rank = 7, .num_ranks = 8, .pid = 4711, .host = "node3", .world = "f00d"});
  EXPECT_FALSE(std::filesystem::exists(folder));
  recent_.write("[parallel] rank 2 has died");
  const Json json = parse_json(read_file(folder + "/rank-00007.json"), "file");
  EXPECT_EQ(json.at("rank"), 7);
  EXPECT_EQ(json.at("num_ranks"), 8);
  EXPECT_EQ(json.at("host"), "node3");
  EXPECT_EQ(json.at("world"), "f00d");
  EXPECT_EQ(json.at("cause"), "[parallel] rank 2 has died");
}

TEST_F(RecentCollectivesTest, AnswersWhileItsRankRunsAndNotAfterItsEnd) {
  recent_.answer("nowhere to write to");
  const std::string folder = std::string(dir_.path()) + "/collectives", path = folder + "/rank-00000.json";
  recent_.keep_in(folder, {.rank = 0, .num_ranks = 2});
  recent_.add(recent_.add_group("world", {0, 1}), kSum, State::kStarted);
  recent_.answer("first");
  const Json asked = parse_json(read_file(path), path);
  EXPECT_EQ(asked.at("request"), "first");
  EXPECT_EQ(asked.at("cause"), "");
  EXPECT_EQ(asked.at("calls").at(0).at("state"), "started");
  recent_.answer("second");
  EXPECT_EQ(parse_json(read_file(path), path).at("request"), "second");
  recent_.write("[parallel] rank 1 has died");
  recent_.answer("third");
  const Json last = parse_json(read_file(path), path);
  EXPECT_EQ(last.at("request"), "");
  EXPECT_EQ(last.at("cause"), "[parallel] rank 1 has died");
}

TEST_F(RecentCollectivesTest, SaysWhichFileItCannotWrite) {
  const std::string blocked = std::string(dir_.path()) + "/file";
  write_file_atomically(real_files(), blocked, "not a folder");
  recent_.keep_in(blocked + "/collectives", {});
  try {
    recent_.write("why");
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kStorage);
    EXPECT_NE(std::string(error.what()).find(blocked), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tycho
