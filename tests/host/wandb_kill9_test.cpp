// Whole runs that report to W&B: killed with kill -9 at each of their requests, and against a server that
// stores but does not answer. The server ends with every step once. Needs the engine.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <thread>

#include "tests/host/online_run.h"
#include "tests/host/shell.h"

namespace tycho {
namespace {

using Fate = OnlineRun::Fate;

constexpr int kStepsPerStart = 3;

const char* const kRecipe = R"(
local t = require "tycho"
local r = t.recipe "tiny"
r.model = t.model.llama { layers = 1, width = 16, heads = 2, ffn_width = 32, vocab_size = 512 }
r.seq_len, r.global_batch, r.threads = 16, "2sp", 1
r.tokenizer, r.train_data = "data/tokenizer.json", t.data.mds { local_dir = "data" }
r.optimizer = t.optim.adamw { lr = 1e-3 }
r.ckpt = { every = "3ba", keep = 2 }
r.log.sinks = { t.log.jsonl {}, t.log.wandb { project = "proj", tags = { "a" }, mode = "online" } }
return r
)";

class WandbKill9 : public ShellTest {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    write(kRecipe, "tiny.lua");
    const Outcome made = here(
        "seq 3000 >a.txt; tycho tokenizer train a.txt --vocab-size 260 --out data/tokenizer.json && "
        "tycho data convert a.txt --tokenizer data/tokenizer.json --no-separator --concat-tokens 16 --out "
        "data");
    ASSERT_EQ(made.code, 0) << made.output;
  }
  void TearDown() override {
    EXPECT_EQ(here(fmt::format("grep -rl {} runs *.txt", kWandbKey)).output, "");
    ShellTest::TearDown();
  }

  /// Starts a run, and kills it at its request `number`. Returns false when it ended by itself before that.
  static bool is_killed_at(OnlineRun& run, int number, bool is_stored) {
    run.server.set_watch([&](int request, const testing::SeenRequest&) {
      if (request == number && is_stored) run.process.strike();
    });
    run.server.set_fate([&](int request) {
      if (request < number) return Fate::kAnswer;
      if (request == number && !is_stored) run.process.strike();
      return is_stored && request == number ? Fate::kLoseAnswer : Fate::kLoseRequest;
    });
    run.start(run.saved_step() + kStepsPerStart);
    const bool is_killed = run.is_killed();
    run.server.set_fate({});
    run.server.set_watch({});
    return is_killed;
  }

  /// Kills a run at each request, one a start, until a start ends before its turn. Returns how many died.
  static int kill_at_each_request(OnlineRun& run, bool is_stored) {
    constexpr int kMost = 60;
    int number = 0;
    while (number < kMost && is_killed_at(run, number, is_stored)) ++number;
    EXPECT_LT(number, kMost);
    return number;
  }
};

// Two runs at a time: one dies before its requests are stored, one after.
TEST_F(WandbKill9, AtEachRequestLosesAndDoublesNothing) {
  OnlineRun before(folder_, "before"), after(folder_, "after");
  int num_before = 0, num_after = 0;
  std::thread other([&] { num_before = kill_at_each_request(before, /*is_stored=*/false); });
  num_after = kill_at_each_request(after, /*is_stored=*/true);
  other.join();
  fmt::print("killed before {} requests and after {}\n", num_before, num_after);
  // Status, upsert, rows, four calls of an artifact, names of files, four files, exit.
  constexpr int kRequestsOfARun = 13;
  EXPECT_GE(num_before, kRequestsOfARun);
  EXPECT_GE(num_after, kRequestsOfARun);
  before.expect_all_once();
  after.expect_all_once();
}

// The last steps, the last checkpoint and the end: killed when the checkpoint is there, and at each request.
TEST_F(WandbKill9, AfterTheLastStepTheSameCommandGivesTheRest) {
  constexpr int kOfTheEnd = 14;
  int num_dead = 0, num_said = 0;
  for (int number = -2; number < kOfTheEnd; ++number) {
    OnlineRun run(folder_, fmt::format("end{}", number));
    const auto has_commit = [&] { return run.saved_step() == kStepsPerStart; };
    if (number >= 0) {
      num_dead += is_killed_at(run, number, /*is_stored=*/number % 2 == 1);
    } else {
      run.start(kStepsPerStart);
      std::optional<int> status;
      while (!(status = run.process.ended(/*waits=*/false)))
        if (has_commit()) run.process.strike();
      num_dead += WIFSIGNALED(*status);
    }
    const bool is_all_trained = has_commit();
    run.start(kStepsPerStart);
    EXPECT_FALSE(run.is_killed());
    EXPECT_EQ(run.server.run().history.size(), static_cast<size_t>(kStepsPerStart));
    const bool is_said = run.output().find("t.log.wandb has now what") != std::string::npos;
    EXPECT_TRUE(is_all_trained || !is_said) << run.output();
    num_said += is_said;
    const auto num_requests = run.server.requests().size();
    run.start(kStepsPerStart);
    EXPECT_FALSE(run.is_killed());
    EXPECT_EQ(run.server.requests().size(), num_requests);
    // The console lacks the lines that came when all was sent: what a start said, and that of the last start.
    here(fmt::format("{} tycho log sync runs/end{}", run.variables(), number));
    run.expect_all_once();
  }
  EXPECT_GT(num_dead, kOfTheEnd / 2);
  EXPECT_GT(num_said, 0);
}

TEST_F(WandbKill9, AServerThatStoresWithoutAnsweringDelaysOnlyTheEndAndIsCaughtUpOnce) {
  constexpr double kTimeoutOfARequest_s = 20;
  OnlineRun run(folder_, "hung");
  run.server.set_fate([](int number) { return number < 2 ? Fate::kAnswer : Fate::kStoreAndHang; });
  run.start(kStepsPerStart);
  EXPECT_FALSE(run.is_killed());
  const double end_s =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const double last_s = Json::parse(lines_of(run.dir() / "metrics.jsonl").back()).at("time");
  EXPECT_LT(end_s - last_s, kTimeoutOfARequest_s);  // 8 s, and a busy machine
  EXPECT_CONTAINS(run.output(), "not everything is sent yet");
  EXPECT_CONTAINS(run.output(), "tycho log sync runs/hung");
  EXPECT_FALSE(run.server.run().history.empty() && run.server.run().console.empty());
  EXPECT_TRUE(run.server.run().exit_codes.empty());
  run.server.set_fate({});
  const std::string sync = run.variables() + " tycho log sync runs/hung";
  const Outcome sent = here(sync);
  EXPECT_EQ(sent.code, 0) << sent.output;
  run.expect_all_once();
  const Outcome again = here(sync);
  EXPECT_CONTAINS(again.output, "runs/hung: 0 steps were missing");
  run.expect_all_once();
}

}  // namespace
}  // namespace tycho
