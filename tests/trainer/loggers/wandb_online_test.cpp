// Runs that report to a server of W&B which answers, fails, hangs or forgets to answer.
#include "trainer/loggers/wandb_online.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "tests/trainer/loggers/wandb_online_fixture.h"
#include "trainer/base/error.h"
#include "trainer/loggers/wandb_sync.h"

namespace tycho {
namespace {

using testing::SeenRequest;
using testing::StoredRun;
using testing::WandbStandIn;
using Fate = WandbStandIn::Fate;

/// "step loss" of the rows on the server, in their order.
std::vector<std::string> rows_of(const StoredRun& run) {
  std::vector<std::string> rows;
  for (const std::string& line : run.history) {
    const Json row = Json::parse(line, nullptr, false);
    rows.push_back(row.is_object() ? row.at("_step").dump() + " " + row.at("loss").dump()
                                   : "damaged: " + line);
  }
  return rows;
}

TEST(WandbOnline, SendsTheRunWithItsRecipeRowsSummaryConsoleAndExitCode) {
  TempDir dir;
  write_recipe(dir.path());
  WandbStandIn server(dir.path());
  const Online environment(server.url());
  EXPECT_TRUE(run_attempt(dir.path(), online(), {0, 3}).warnings.empty());
  EXPECT_TRUE(server.unknown().empty()) << server.unknown()[0];
  const StoredRun run = server.run();
  EXPECT_EQ(rows_of(run), (std::vector<std::string>{"1 1.1", "2 2.1", "3 3.1"}));
  EXPECT_EQ(run.name, "mpt-125m");
  EXPECT_EQ(run.tags, Json::parse(R"(["a"])"));
  EXPECT_EQ(run.config.at("seed").at("value"), 17);
  EXPECT_TRUE(run.config.at("_wandb").at("value").contains("t"));
  EXPECT_EQ(Json::parse(run.summary).at("loss"), 3.1);
  EXPECT_EQ(run.exit_codes, std::vector<int>{0});
  ASSERT_FALSE(run.console.empty());
  EXPECT_EQ(run.console[0][10], 'T');
  // log.txt gets its last line when everything is sent.
  EXPECT_NE(run.console.back().find("event=end text=done"), std::string::npos) << run.console.back();
  EXPECT_NE(run.files.at("output.log").find("event=end text=done"), std::string::npos);
  for (const char* name : {"config.yaml", "wandb-summary.json", "wandb-metadata.json", "output.log"})
    EXPECT_TRUE(run.files.contains(name)) << name;
  // Whoever stores the files does not get the key.
  for (const auto& request : server.requests())
    EXPECT_EQ(request.headers.contains("authorization"), request.method == "POST") << request.path;
  // `wandb sync` would send every row again; it takes only files that end in .wandb.
  EXPECT_TRUE(files_below(dir.path(), ".wandb").empty());
  EXPECT_EQ(files_below(dir.path(), ".online").size(), 1u);
}

TEST(WandbOnline, AResumedRunContinuesAndRepeatsNoStep) {
  TempDir dir;
  write_recipe(dir.path());
  WandbStandIn server(dir.path());
  const Online environment(server.url());
  run_attempt(dir.path(), online(), {0, 4, "stopped by SIGTERM after step 4"});
  run_attempt(dir.path(), online(), {2, 6});
  const StoredRun run = server.run();
  EXPECT_EQ(rows_of(run), (std::vector<std::string>{"1 1.1", "2 2.1", "3 3.1", "4 4.1", "5 5.2", "6 6.2"}));
  EXPECT_EQ(run.exit_codes.size(), 2u);
  EXPECT_TRUE(server.unknown().empty());
  // The last line of the first attempt is there once, though it was sent before log.txt had it.
  EXPECT_EQ(static_cast<int>(run.console.size()), count_of(text_of(dir / "log.txt"), "\n"));
}

TEST(WandbOnline, StepsThatAKillKeptFromTheFileComeFromMetricsJsonl) {
  TempDir dir;
  write_recipe(dir.path());
  WandbStandIn server(dir.path());
  const Online environment(server.url());
  run_attempt(dir.path(), online(), {0, 4, ""});
  run_attempt(dir.path(), online(), {4, 6});
  expect_every_step_once(server.run(), 6);
}

TEST(WandbOnline, AnOfflineAttemptIsSentByTheNextOneThatIsOnline) {
  TempDir dir;
  write_recipe(dir.path());
  WandbStandIn server(dir.path());
  const Online environment(server.url());
  run_attempt(dir.path(), online(""), {0, 4});
  EXPECT_EQ(server.num_requests(), 0);
  const ScopedEnv mode("WANDB_MODE", "online");
  run_attempt(dir.path(), online(""), {4, 6});
  expect_every_step_once(server.run(), 6);
}

TEST(WandbOnline, WithoutAKeyARunEndsBeforeItsFirstStepAndSaysWhatToDo) {
  TempDir dir;
  WandbStandIn server(dir.path());
  const Online environment(server.url());
  const ScopedEnv no_key("WANDB_API_KEY", nullptr), no_netrc("NETRC", (dir / "none").c_str());
  try {
    run_attempt(dir.path(), online(), {0, 1});
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    for (const char* part : {"t.log.wandb cannot start", "127.0.0.1", "WANDB_API_KEY", "mode = \"offline\""})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  EXPECT_EQ(server.num_requests(), 0);
}

TEST(WandbOnline, ALaterStartWithoutAKeyWritesItsFileAndSyncSendsIt) {
  TempDir dir;
  write_recipe(dir.path());
  WandbStandIn server(dir.path());
  const Online environment(server.url());
  run_attempt(dir.path(), online(), {0, 3});
  {
    const ScopedEnv no_key("WANDB_API_KEY", nullptr), no_netrc("NETRC", (dir / "none").c_str());
    const Told told = run_attempt(dir.path(), online(), {3, 5});
    ASSERT_EQ(told.warnings.size(), 1u);
    for (const char* part : {"nothing is sent", "WANDB_API_KEY", "tycho log sync"})
      EXPECT_NE(told.warnings[0].find(part), std::string::npos) << told.warnings[0];
  }
  {
    const ScopedEnv odd_mode("WANDB_MODE", "onlin");
    EXPECT_EQ(run_attempt(dir.path(), online(""), {5, 6}).warnings.size(), 1u);
  }
  // `wandb sync` would send what the first attempt has sent again.
  EXPECT_EQ(files_below(dir.path(), ".online").size(), 3u);
  EXPECT_EQ(server.run().history.size(), 3u);
  EXPECT_EQ(sync_wandb(dir.path()).num_rows, 3);
  expect_every_step_once(server.run(), 6);
}

TEST(WandbOnline, AStartWithNothingLeftToTrainSendsWhatAKillKeptBackAndSaysSo) {
  for (const bool is_online : {true, false}) {
    TempDir dir;
    write_recipe(dir.path());
    WandbStandIn server(dir.path());
    const Online environment(server.url());
    run_attempt(dir.path(), online("offline"), {0, 4, ""});
    const std::string killed = files_below(dir.path(), ".wandb").at(0);
    std::filesystem::resize_file(killed, std::filesystem::file_size(killed) - 20);  // no exit code
    const std::vector<SinkConfig> sinks = online(is_online ? "online" : "offline");
    const std::string checkpoints = dir / "checkpoints/step-";
    const Attempt rest{4, 4, "done", {{2, checkpoints + "2", 7}, {4, checkpoints + "4", 7}}};
    const Told told = run_attempt(dir.path(), sinks, rest);
    ASSERT_EQ(told.warnings.size(), 1u);
    EXPECT_NE(told.warnings[0].find("t.log.wandb has now what"), std::string::npos) << told.warnings[0];
    if (!is_online) sync_wandb(dir.path());
    expect_every_step_once(server.run(), 4);
    EXPECT_EQ(server.run().exit_codes, std::vector<int>{0});
    ASSERT_EQ(server.run().artifacts.size(), 2u);
    EXPECT_NE(server.run().artifacts.back().at("aliases").dump().find("step-4"), std::string::npos);
    // A start after that has nothing to say and nothing to send.
    const int num_requests = server.num_requests();
    EXPECT_TRUE(run_attempt(dir.path(), sinks, rest).warnings.empty());
    EXPECT_EQ(server.num_requests(), num_requests);
  }
}

TEST(WandbOnline, AServerThatWasAwayAtTheEndIsCaughtUpByTheNextStart) {
  TempDir dir;
  write_recipe(dir.path());
  WandbStandIn server(dir.path());
  const Online environment(server.url());
  server.set_fate([](int) { return Fate::k500; });
  EXPECT_EQ(run_attempt(dir.path(), online(), {0, 3}).warnings.size(), 1u);
  server.set_fate({});
  EXPECT_EQ(run_attempt(dir.path(), online(), {3, 3}).warnings.size(), 1u);
  expect_every_step_once(server.run(), 3);
}

TEST(WandbOnline, ACertificateThatIsNotTrustedIsSaidAtOnceAndOnce) {
  TempDir dir;
  write_recipe(dir.path());
  WandbStandIn server(dir.path());
  const Online environment("https" + server.url().substr(4));
  const ScopedEnv certificates("CURL_CA_BUNDLE", (dir / "none.pem").c_str());
  run_attempt(dir.path(), online("offline"), {0, 2});
  {
    WandbOnline run(find_wandb_settings(""), dir.path(), wandb_files(dir / "wandb", wandb_run_id(dir.path())),
                    {.refused_wait_s = 0.01});
    std::string news;
    while (news.empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      news = run.news();
    }
    EXPECT_NE(news.find("none.pem: name another file in CURL_CA_BUNDLE"), std::string::npos) << news;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(run.news(), "");
  }
  EXPECT_THROW(sync_wandb(dir.path()), Error);
}

// A start that ends before its first step leaves no lines, but `tycho log sync` may have sent them.
TEST(WandbOnline, LinesThatAreNoLongerInTheLogAreReplacedOnTheServer) {
  TempDir dir;
  write_recipe(dir.path());
  WandbStandIn server(dir.path());
  const Online environment(server.url());
  run_attempt(dir.path(), online(), {0, 3});
  const std::string log = text_of(dir / "log.txt");
  write_text(dir / "log.txt", log + "failed to start\nno memory\n");
  sync_wandb(dir.path());
  write_text(dir / "log.txt", log + "resumed\nstep 4\n");
  sync_wandb(dir.path());
  const std::vector<std::string> console = server.run().console;
  ASSERT_EQ(static_cast<int>(console.size()), count_of(log, "\n") + 2);
  EXPECT_EQ(console[console.size() - 2], "resumed");
  EXPECT_EQ(console.back(), "step 4");
  // Lines that the server has are not sent again.
  const size_t num_requests = server.requests().size();
  sync_wandb(dir.path());
  const std::vector<SeenRequest> requests = server.requests();
  for (size_t i = num_requests; i < requests.size(); ++i) {
    if (requests[i].path.ends_with("file_stream")) {
      EXPECT_FALSE(Json::parse(requests[i].body).at("files").contains("output.log"));
    }
  }
  EXPECT_EQ(server.run().console, console);
}

TEST(WandbOnline, KeysComeFromNetrcToo) {
  EXPECT_EQ(netrc_password("machine other login a password b\nmachine h\n login user\n password k3y\n", "h"),
            "k3y");
  EXPECT_EQ(netrc_password("# machine h password x\nmachine g password y\n", "h"), std::nullopt);
  EXPECT_EQ(netrc_password("machine g password y\ndefault login u password z", "h"), "z");
  EXPECT_EQ(netrc_password("machine h password", "h"), std::nullopt);
}

// Each request in turn is lost, stored without an answer, or refused for a time.
TEST(WandbOnline, AFailureOfAnyRequestLosesAndDoublesNothing) {
  for (const Fate fate : {Fate::kLoseRequest, Fate::kLoseAnswer, Fate::k500})
    for (int bad = 0; bad < 7; ++bad) {
      TempDir dir;
      write_recipe(dir.path());
      WandbStandIn server(dir.path());
      const Online environment(server.url());
      server.set_fate([&](int number) { return number == bad ? fate : Fate::kAnswer; });
      run_attempt(dir.path(), online(), {0, 5});
      expect_every_step_once(server.run(), 5);
      EXPECT_EQ(server.run().exit_codes, std::vector<int>{0}) << bad;
    }
}

// The process ends at each request: before it is sent, and after it is stored.
TEST(WandbOnline, AKillAtAnyRequestLosesAndDoublesNothing) {
  for (const Fate fate : {Fate::kLoseRequest, Fate::kLoseAnswer})
    for (int bad = 0; bad < 4; ++bad) {
      TempDir dir;
      write_recipe(dir.path());
      WandbStandIn server(dir.path());
      const Online environment(server.url());
      run_attempt(dir.path(), online("offline"), {0, 5, ""});
      server.set_fate([&](int number) { return number < bad ? Fate::kAnswer : fate; });
      {
        WandbServer client(find_wandb_settings(""), 5);
        WandbUpload upload(client, dir.path(), wandb_files(dir / "wandb", wandb_run_id(dir.path())));
        try {
          upload.send();
        } catch (const Error&) {
        }
      }
      server.set_fate({});
      sync_wandb(dir.path());
      expect_every_step_once(server.run(), 5);
      EXPECT_EQ(sync_wandb(dir.path()).num_rows, 0);
      expect_every_step_once(server.run(), 5);
    }
}

TEST(WandbOnline, AServerThatFailsNeitherEndsNorDelaysARunAndSyncCatchesUp) {
  for (const Fate fate : {Fate::kHang, Fate::k500, Fate::k429, Fate::k401, Fate::kLoseRequest}) {
    TempDir dir;
    write_recipe(dir.path());
    WandbStandIn server(dir.path());
    const Online environment(server.url());
    server.set_fate([&](int number) { return number < 2 ? Fate::kAnswer : fate; });
    const auto begin = std::chrono::steady_clock::now();
    const Told told = run_attempt(dir.path(), online(), {0, 5});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(took.count(), 10 + 20);  // 10 s, and a busy machine
    EXPECT_EQ(told.end, "done");
    std::string said;
    for (const std::string& warning : told.warnings) said += warning + "\n";
    EXPECT_NE(said.find("tycho log sync " + dir.path()), std::string::npos) << said;
    EXPECT_EQ(said.find(kKey), std::string::npos);
    server.set_fate({});
    sync_wandb(dir.path());
    expect_every_step_once(server.run(), 5);
    EXPECT_EQ(server.run().exit_codes.back(), 0);
    EXPECT_EQ(sync_wandb(dir.path()).num_rows, 0);
    for (const char* file : {"events.jsonl", "log.txt", "metrics.jsonl", "wandb_run_id.txt"})
      EXPECT_EQ(text_of(dir / file).find(kKey), std::string::npos) << file;
  }
}

TEST(WandbOnline, SyncOfAKilledRunSendsTheStepThatOnlyMetricsJsonlHas) {
  TempDir dir;
  write_recipe(dir.path());
  WandbStandIn server(dir.path());
  const Online environment(server.url());
  run_attempt(dir.path(), online("offline"), {0, 4, ""});
  // A kill leaves the file without its last row.
  const std::string file = files_below(dir.path(), ".wandb").at(0);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) - 20);
  EXPECT_EQ(sync_wandb(dir.path()).num_rows, 4);
  expect_every_step_once(server.run(), 4);
  // The official client passes over files with this mark.
  EXPECT_TRUE(std::filesystem::exists(file + ".synced"));
}

TEST(WandbOnline, ARunThatIsIdleShowsSignsOfLife) {
  TempDir dir;
  WandbStandIn server(dir.path());
  const Online environment(server.url());
  run_attempt(dir.path(), online("offline"), {0, 2});
  WandbOnline online(find_wandb_settings(""), dir.path(),
                     wandb_files(dir / "wandb", wandb_run_id(dir.path())), {.every_s = 0.01, .beat_s = 0.03});
  for (int i = 0; i < 3000 && server.run().beats < 3; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_GE(server.run().beats, 3);
  EXPECT_EQ(online.end(""), "");
}

}  // namespace
}  // namespace tycho
