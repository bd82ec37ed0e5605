// A run as a team has it: it reports to W&B, its checkpoints go to a bucket, and a page follows it. It is
// killed ten times, and nothing is lost. Needs the engine.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "tests/host/online_run.h"
#include "tests/host/shell.h"
#include "tests/trainer/buckets/s3_server.h"

namespace tycho {
namespace {

using testing::S3Server;
using testing::SeenRequest;
using testing::ServerReply;
using testing::StoreFault;

constexpr const char* kSecret = "secret-of-the-test";

const char* const kTeamRecipe = R"(
local t = require "tycho"
local r = t.recipe "tiny"
r.model = t.model.llama { layers = 2, width = 32, heads = 2, ffn_width = 64, vocab_size = 512 }
r.seq_len, r.global_batch, r.threads = 32, "4sp", 1
r.tokenizer, r.train_data = "data/tokenizer.json", t.data.mds { local_dir = "data" }
r.optimizer = t.optim.adamw { lr = 1e-3 }
r.ckpt = { every = "10ba", keep = 2 }
return r
)";
// Lines that only the disturbed run has.
const char* const kReach = R"(
r.log.sinks = { t.log.jsonl {}, t.log.wandb { project = "proj", tags = { "a" }, mode = "online" } }
r.ckpt.remote = "s3://bucket/{run_name}"
return r
)";

enum class Where { kStep, kStoreBefore, kStoreAfter, kRemoteCommit, kWandbBefore, kWandbAfter, kWandbExit };

struct Moment {
  Where where;
  int number;     // step, or how many of the kind go before
  int last_step;  // until which the run is started
};

constexpr int kLastStep = 240, kEarlierLastStep = 200;
constexpr Moment kMoments[] = {
    {Where::kStep, 15, kEarlierLastStep},       {Where::kStoreBefore, 1, kEarlierLastStep},
    {Where::kWandbBefore, 0, kEarlierLastStep}, {Where::kStep, 50, kEarlierLastStep},
    {Where::kStoreAfter, 12, kEarlierLastStep}, {Where::kRemoteCommit, 2, kEarlierLastStep},
    {Where::kWandbAfter, 2, kEarlierLastStep},  {Where::kStep, 120, kEarlierLastStep},
    {Where::kWandbExit, 0, kEarlierLastStep},   {Where::kStep, 215, kLastStep}};

/// Kills a process at a moment.
class Killer {
 public:
  void arm(const Victim& victim, const Moment& moment) {
    const std::lock_guard lock(mutex_);
    victim_ = &victim;
    moment_ = moment;
    count_ = 0;
  }
  /// Counts what happens, and kills when it is time. Returns true when it has killed.
  bool at(Where where) {
    const std::lock_guard lock(mutex_);
    if (victim_ == nullptr || moment_.where != where || count_++ != moment_.number) return false;
    victim_->strike();
    victim_ = nullptr;
    return true;
  }

 private:
  std::mutex mutex_;
  const Victim* victim_ = nullptr;
  Moment moment_{};
  int count_ = 0;
};

void connect(Killer& killer, OnlineRun& run, S3Server& store) {
  store.fault = [&](int) {
    if (killer.at(Where::kStoreBefore)) return StoreFault::kDropBefore;
    return killer.at(Where::kStoreAfter) ? StoreFault::kDropAfter : StoreFault::kNone;
  };
  store.answered = [&](const SeenRequest& request, const ServerReply&) {
    if (request.method == "PUT" && request.path.ends_with("/COMMIT")) killer.at(Where::kRemoteCommit);
  };
  run.server.set_fate([&](int) {
    return killer.at(Where::kWandbBefore) ? OnlineRun::Fate::kLoseRequest : OnlineRun::Fate::kAnswer;
  });
  run.server.set_watch([&](int, const SeenRequest& request) {
    killer.at(Where::kWandbAfter);
    if (request.body.find("\"complete\":true") != std::string::npos) killer.at(Where::kWandbExit);
  });
}

int newest_step(const fs::path& metrics) {
  const std::vector<std::string> lines = lines_of(metrics);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line)
    if (const Json row = Json::parse(*line, nullptr, /*allow_exceptions=*/false); row.is_object())
      return row.at("step");
  return 0;
}

/// Returns the data of a page; null when it is not a complete file.
Json page_data(const std::string& page) {
  const std::string mark = "id=\"page-data\">";
  const size_t begin = page.find(mark);
  if (!page.starts_with("<!doctype html>") || !page.ends_with("</html>\n") || begin == std::string::npos)
    return {};
  const size_t end = page.find("</script>", begin);
  const Json data = Json::parse(page.substr(begin + mark.size(), end - begin - mark.size()), nullptr, false);
  return data.is_object() ? data : Json();
}

std::vector<int> steps_on(const Json& page) {
  return page.is_object() ? page.at("runs").at(0).at("clock").at("step").get<std::vector<int>>()
                          : std::vector<int>();
}

/// Reads a page for as long as it is written.
class PageReader {
 public:
  explicit PageReader(fs::path file)
      : file_(std::move(file)), thread_([this](const std::stop_token& stop) {
          while (!stop.stop_requested()) {
            if (fs::exists(file_)) look();
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          }
        }) {}
  /// Returns how many versions it has seen.
  size_t end() {
    thread_.request_stop();
    thread_.join();
    EXPECT_EQ(num_torn_, 0);
    return stamps_.size();
  }

 private:
  void look() {
    const Json data = page_data(text_of(file_));
    if (data.is_object())
      stamps_.insert(data.at("stamp").dump());
    else
      ++num_torn_;
  }

  const fs::path file_;
  std::set<std::string> stamps_;
  int num_torn_ = 0;
  std::jthread thread_;
};

class WatchedRunKill9 : public ShellTest {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    const std::string recipe = kTeamRecipe;
    write(recipe, "plain.lua");
    write(recipe.substr(0, recipe.rfind("return r")) + kReach, "tiny.lua");
    const Outcome made = here(fmt::format(
        "seq 30000 >a.txt; tycho tokenizer train a.txt --vocab-size 260 --out data/tokenizer.json && "
        "tycho data convert a.txt --tokenizer data/tokenizer.json --no-separator --concat-tokens 32 --out "
        "data "
        "&& tycho run plain.lua run_name=wanted max_duration={}ba",
        kLastStep));
    ASSERT_EQ(made.code, 0) << made.output;
  }

  /// Returns the loss of each step, that of the last record where there are several.
  std::vector<Json> losses_of(const std::string& run) const {
    std::vector<Json> losses;
    for (const std::string& line : lines_of(folder_ / "runs" / run / "metrics.jsonl")) {
      const Json row = Json::parse(line, nullptr, /*allow_exceptions=*/false);
      if (!row.is_object()) {
        ADD_FAILURE() << "a damaged line: " << line;
        continue;
      }
      losses.resize(std::max(losses.size(), row.at("step").get<size_t>()));
      losses[row.at("step").get<size_t>() - 1] = row.at("loss");
    }
    return losses;
  }

  /// Starts the run and kills it at a moment. Returns true when that has come.
  static bool is_killed(OnlineRun& run, Killer& killer, const Moment& moment) {
    killer.arm(run.process, moment);
    run.start(moment.last_step);
    const fs::path metrics = run.dir() / "metrics.jsonl";
    std::optional<int> status;
    while (!(status = run.process.ended(/*waits=*/false))) {
      if (moment.where == Where::kStep && newest_step(metrics) >= moment.number) run.process.strike();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL;
  }

  void expect_remote(const std::string& variables) const {
    const auto tycho = [&](const std::string& words) { return here(variables + " tycho " + words); };
    const Outcome verified = tycho("ckpt verify s3://bucket/watched");
    EXPECT_EQ(verified.code, 0) << verified.output;
    const Outcome listed = tycho("ckpt ls s3://bucket/watched");
    EXPECT_CONTAINS(listed.output, std::to_string(kLastStep));
    for (const auto& [from, to] :
         {std::pair("s3://bucket/watched", "far"), std::pair("runs/wanted", "near")}) {
      const Outcome copied = tycho(fmt::format("ckpt reshard {} --out {}", from, to));
      EXPECT_EQ(copied.code, 0) << copied.output;
    }
    const Outcome compared = tycho("ckpt diff far near");
    EXPECT_CONTAINS(compared.output, " tensors are equal, 0 differ");
  }
};

TEST_F(WatchedRunKill9, TenKillsLoseNothing) {
  Killer killer;
  S3Server store;
  const std::string variables = fmt::format(
      "S3_ENDPOINT_URL={} AWS_ACCESS_KEY_ID=AKIDTEST AWS_SECRET_ACCESS_KEY={} AWS_CONFIG_FILE=none "
      "AWS_SHARED_CREDENTIALS_FILE=none AWS_PROFILE= AWS_SESSION_TOKEN= AWS_REGION=us-east-1",
      store.url(), kSecret);
  OnlineRun run(folder_, "watched", variables);
  connect(killer, run, store);
  const fs::path page = folder_ / "page.html";
  PageReader reader(page);
  Victim watcher;
  for (const Moment& moment : kMoments) {
    ASSERT_TRUE(is_killed(run, killer, moment)) << static_cast<int>(moment.where) << run.output();
    if (&moment == &kMoments[0])
      watcher.start(fmt::format("cd {} && exec {} report runs/watched --watch --out page.html >page.txt 2>&1",
                                folder_.string(), TYCHO_PROGRAM));
  }
  run.start(kLastStep);
  EXPECT_FALSE(run.is_killed());

  constexpr std::chrono::seconds kLongest(120);
  const auto deadline = std::chrono::steady_clock::now() + kLongest;
  while (steps_on(page_data(text_of(page))).size() < kLastStep && std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  watcher.strike(SIGINT);
  const std::optional<int> status = watcher.ended(/*waits=*/true);
  EXPECT_TRUE(status && WIFEXITED(*status) && WEXITSTATUS(*status) == 130) << text_of(folder_ / "page.txt");
  std::vector<int> all(kLastStep);
  for (int i = 0; i < kLastStep; ++i) all[static_cast<size_t>(i)] = i + 1;
  EXPECT_EQ(steps_on(page_data(text_of(page))), all);
  fmt::print("ten kills; {} versions of the page\n", reader.end());

  EXPECT_EQ(losses_of("watched"), losses_of("wanted"));
  EXPECT_EQ(losses_of("watched").size(), static_cast<size_t>(kLastStep));
  run.expect_all_once();
  expect_remote(variables);
  EXPECT_EQ(store.num_unknown(), 0);
  EXPECT_EQ(here(fmt::format("grep -rlE '{}|{}' runs *.txt *.html", kWandbKey, kSecret)).output, "");
}

}  // namespace
}  // namespace tycho
