// Whole runs that report to W&B: killed with kill -9 at each of their requests, and against a server that
// stores but does not answer. The server ends with every step once. Needs the engine.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <map>
#include <thread>

#include "tests/host/shell.h"
#include "tests/trainer/loggers/wandb_stand_in.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
using testing::StoredRun;
using testing::WandbStandIn;
using Fate = WandbStandIn::Fate;

constexpr int kStepsPerStart = 3;
const char* const kKey = "0123456789012345678901234567890123456789";

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

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> lines_of(const fs::path& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// A run in a folder, and its server.
class OnlineRun {
 public:
  OnlineRun(const fs::path& folder, std::string name)
      : server(folder), folder_(folder), name_(std::move(name)), dir_(folder / "runs" / name_) {}

  /// Starts the program until it has trained kStepsPerStart steps more than its checkpoints have.
  pid_t start() {
    last_step_ = saved_step() + kStepsPerStart;
    const std::string command = fmt::format(
        "cd {} && WANDB_BASE_URL={} WANDB_API_KEY={} no_proxy=127.0.0.1 exec {} run tiny.lua run_name={} "
        "max_duration={}ba --force >{}.txt 2>&1",
        folder_.string(), server.url(), kKey, TYCHO_PROGRAM, name_, last_step_, name_);
    const char* const words[] = {"sh", "-c", command.c_str(), nullptr};
    pid_t child = 0;
    EXPECT_EQ(::posix_spawn(&child, "/bin/sh", nullptr, nullptr, const_cast<char**>(words), environ), 0);
    return child;
  }

  static int wait_for(pid_t child) {
    int status = -1;
    ::waitpid(child, &status, 0);
    return status;
  }

  /// Starts it, and kills it at its request `number`. Returns false when it ended by itself before that.
  bool is_killed_at(int number, bool is_stored) {
    std::atomic<pid_t> child = 0;
    const auto strike = [&] {
      while (child == 0) std::this_thread::yield();
      ::kill(child, SIGKILL);
    };
    server.set_watch([&](int request) {
      if (request == number && is_stored) strike();
    });
    server.set_fate([&](int request) {
      if (request < number) return Fate::kAnswer;
      if (request == number && !is_stored) strike();
      return is_stored && request == number ? Fate::kLoseAnswer : Fate::kLoseRequest;
    });
    child = start();
    const int status = wait_for(child);
    server.set_fate({});
    server.set_watch({});
    const bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    EXPECT_TRUE(is_killed || status == 0) << status << output();
    return is_killed;
  }

  std::string output() const { return text_of(folder_ / (name_ + ".txt")); }
  const fs::path& dir() const { return dir_; }
  int last_step() const { return last_step_; }

  /// Step of the newest checkpoint.
  int saved_step() const {
    int step = 0;
    if (!fs::exists(dir_ / "checkpoints")) return 0;
    for (const auto& save : fs::directory_iterator(dir_ / "checkpoints"))
      if (fs::exists(save.path() / "COMMIT"))
        step = std::max(step, std::stoi(save.path().filename().string().substr(5)));
    return step;
  }

  /// Compares what the server has with the files of the run.
  void expect_all_once() {
    const StoredRun run = server.run();
    expect_rows(run);
    expect_console(run);
    const Json recipe = Json::parse(text_of(dir_ / "recipe.json"));
    for (const auto& [key, value] : recipe.items())
      EXPECT_EQ(run.config.value(key, Json::object()).value("value", Json()), value) << key;
    EXPECT_EQ(run.tags, Json({"a"}));
    ASSERT_FALSE(run.exit_codes.empty());
    EXPECT_EQ(run.exit_codes.back(), 0);
    ASSERT_FALSE(run.artifacts.empty());
    for (const Json& artifact : run.artifacts) EXPECT_EQ(artifact.at("state"), "COMMITTED");
    const std::string newest = fmt::format("step-{}", last_step_);
    EXPECT_NE(run.artifacts.back().at("aliases").dump().find(newest), std::string::npos);
    EXPECT_EQ(server.unknown(), std::vector<std::string>());
  }

 private:
  void expect_rows(const StoredRun& run) const {
    std::map<int, Json> wanted;  // a step that was done again has the same bits
    for (const std::string& line : lines_of(dir_ / "metrics.jsonl")) {
      Json row = Json::parse(line);
      const int step = row.at("step");
      wanted[step] = std::move(row);
    }
    ASSERT_EQ(static_cast<int>(run.history.size()), last_step_);
    ASSERT_EQ(static_cast<int>(wanted.size()), last_step_);
    for (int step = 1; step <= last_step_; ++step) {
      const std::string& text = run.history[static_cast<size_t>(step - 1)];
      const Json row = Json::parse(text, nullptr, /*allow_exceptions=*/false);
      ASSERT_TRUE(row.is_object()) << text;
      EXPECT_EQ(row.at("_step"), step);
      EXPECT_EQ(row.at("loss"), wanted[step].at("loss"));
    }
    const Json summary = Json::parse(run.summary);
    EXPECT_EQ(summary.at("loss"), wanted[last_step_].at("loss"));
    EXPECT_EQ(Json::parse(run.files.at("wandb-summary.json")).at("loss"), summary.at("loss"));
    double last_s = 0;
    for (const std::string& line : run.events) {
      const Json event = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      ASSERT_TRUE(event.is_object()) << line;
      EXPECT_GT(event.at("_timestamp"), last_s);
      last_s = event.at("_timestamp");
    }
  }

  // Times are local in log.txt and in UTC on the server.
  void expect_console(const StoredRun& run) const {
    constexpr size_t kTimeBytes = 19, kUtcBytes = 26;
    const std::vector<std::string> lines = lines_of(dir_ / "log.txt");
    ASSERT_EQ(run.console.size(), lines.size());
    for (size_t i = 0; i < lines.size(); ++i)
      EXPECT_EQ(run.console[i].substr(kUtcBytes), lines[i].substr(kTimeBytes));
  }

 public:
  WandbStandIn server;

 private:
  fs::path folder_;
  std::string name_;
  fs::path dir_;
  int last_step_ = 0;
};

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
    EXPECT_EQ(here(fmt::format("grep -rl {} runs *.txt", kKey)).output, "");
    ShellTest::TearDown();
  }

  /// Kills a run at each request, one a start, until a start ends before its turn. Returns how many died.
  static int kill_at_each_request(OnlineRun& run, bool is_stored) {
    constexpr int kMost = 60;
    int number = 0;
    while (number < kMost && run.is_killed_at(number, is_stored)) ++number;
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

TEST_F(WandbKill9, AServerThatStoresWithoutAnsweringDelaysOnlyTheEndAndIsCaughtUpOnce) {
  constexpr double kTimeoutOfARequest_s = 20;
  OnlineRun run(folder_, "hung");
  run.server.set_fate([](int number) { return number < 2 ? Fate::kAnswer : Fate::kStoreAndHang; });
  EXPECT_EQ(OnlineRun::wait_for(run.start()), 0) << run.output();
  const double end_s =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const double last_s = Json::parse(lines_of(run.dir() / "metrics.jsonl").back()).at("time");
  EXPECT_LT(end_s - last_s, kTimeoutOfARequest_s);  // 8 s, and a busy machine
  EXPECT_CONTAINS(run.output(), "not everything is sent yet");
  EXPECT_CONTAINS(run.output(), "tycho log sync runs/hung");
  EXPECT_FALSE(run.server.run().history.empty() && run.server.run().console.empty());
  EXPECT_TRUE(run.server.run().exit_codes.empty());
  run.server.set_fate({});
  const std::string sync =
      fmt::format("WANDB_BASE_URL={} WANDB_API_KEY={} no_proxy=127.0.0.1 tycho log sync runs/hung",
                  run.server.url(), kKey);
  const Outcome sent = here(sync);
  EXPECT_EQ(sent.code, 0) << sent.output;
  run.expect_all_once();
  const Outcome again = here(sync);
  EXPECT_CONTAINS(again.output, "runs/hung: 0 steps were missing");
  run.expect_all_once();
}

}  // namespace
}  // namespace tycho
