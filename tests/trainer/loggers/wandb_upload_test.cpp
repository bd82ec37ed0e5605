// Records that a run sends beside the numbers of its steps: the machine, histograms, alerts and checkpoints.
#include "trainer/loggers/wandb_upload.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/trainer/loggers/wandb_online_fixture.h"
#include "trainer/base/error.h"
#include "trainer/loggers/wandb_sync.h"

namespace tycho {
namespace {

using testing::StoredRun;
using testing::WandbStandIn;
using Fate = WandbStandIn::Fate;

/// Runs two steps with everything that a row may have, an alert and checkpoints. Returns the warnings.
std::vector<std::string> run_with_events(const std::string& dir, const std::string& mode,
                                         int64_t first_step) {
  Told told;
  LogConfig log;
  log.sinks = online(mode);
  const auto reporter = make_run_reporter(dir, log, std::make_unique<ToldReporter>(told));
  RunInfo run = some_run();
  run.run_dir = dir;
  run.first_step = first_step;
  reporter->run_start(run);
  const int64_t a = first_step + 1, b = first_step + 2;
  reporter->step(some_step(a), true);
  reporter->event("histogram", "w",
                  {{"step", a}, {"name", "w"}, {"low", 0}, {"high", 1}, {"counts", {1, 2}}});
  reporter->event("alert", "loss spike: 9", {{"step", a}, {"title", "loss spike"}, {"text", "9"}});
  const std::string place = dir + "/checkpoints/step-" + std::to_string(a);
  reporter->event("checkpoint", "saved", {{"step", a}, {"path", place}, {"bytes", 1000}, {"seconds", 1}});
  const std::string remote = "s3://bucket/demo/step-" + std::to_string(a);
  reporter->event("upload", "uploaded", {{"step", a}, {"path", remote}, {"bytes", 1000}});
  reporter->step(some_step(b), true);
  reporter->run_end("done", {});
  return told.warnings;
}

TEST(WandbUpload, SendsNumbersOfTheMachineByTheirTimeAndOnce) {
  TempDir dir;
  write_recipe(dir.path());
  WandbStandIn server(dir.path());
  const Online environment(server.url());
  run_attempt(dir.path(), online(), {0, 3});
  run_attempt(dir.path(), online(), {3, 6});
  sync_wandb(dir.path());
  const StoredRun run = server.run();
  ASSERT_GE(run.events.size(), 4u);  // at the begin and the end of each attempt
  double last_time_s = 0, last_runtime_s = 0;
  for (const std::string& line : run.events) {
    const Json event = Json::parse(line, nullptr, false);
    ASSERT_TRUE(event.is_object()) << line;
    EXPECT_EQ(event.at("_wandb"), true);
    EXPECT_GT(event.at("_timestamp"), last_time_s);
    EXPECT_GE(event.at("_runtime"), last_runtime_s);
    last_time_s = event.at("_timestamp");
    last_runtime_s = event.at("_runtime");
    for (const char* name :
         {"system.memory_percent", "system.proc.memory.rssMB", "system.disk./.usagePercent"})
      EXPECT_TRUE(event.contains(name)) << line;
  }
  EXPECT_TRUE(server.unknown().empty());
}

TEST(WandbUpload, SendsHistogramsAlertsAndReferencesToCheckpoints) {
  TempDir dir;
  write_recipe(dir.path());
  WandbStandIn server(dir.path());
  const Online environment(server.url());
  EXPECT_TRUE(run_with_events(dir.path(), "online", 0).empty());
  EXPECT_TRUE(server.unknown().empty()) << server.unknown()[0];
  const StoredRun run = server.run();
  ASSERT_EQ(run.history.size(), 2u);
  const Json row = Json::parse(run.history[0]);
  EXPECT_EQ(row.at("w"), Json::parse(R"({"_type":"histogram","values":[1,2],"bins":[0.0,0.5,1.0]})"));
  ASSERT_EQ(run.alerts.size(), 1u);
  EXPECT_EQ(run.alerts[0].at("title"), "loss spike");
  EXPECT_EQ(run.alerts[0].at("runName"), run.id);
  ASSERT_EQ(run.artifacts.size(), 2u);
  for (const Json& artifact : run.artifacts) {
    EXPECT_EQ(artifact.at("artifactTypeName"), "model");
    EXPECT_EQ(artifact.at("artifactCollectionName"), "checkpoint-" + run.id);
    EXPECT_EQ(artifact.at("aliases").at(0).at("alias"), "latest");
    EXPECT_EQ(artifact.at("aliases").at(1).at("alias"), "step-1");
    EXPECT_EQ(artifact.at("state"), "COMMITTED");
  }
  EXPECT_EQ(run.artifacts[0].at("manifest").at("contents").at("step-1").at("ref"),
            "file://" + dir.path() + "/checkpoints/step-1");
  EXPECT_EQ(run.artifacts[1].at("manifest").at("contents").at("step-1").at("ref"), "s3://bucket/demo/step-1");
}

// With a store of objects the local folder is soon gone.
TEST(WandbUpload, ARunWithARemoteRefersToThatAlone) {
  TempDir dir;
  write_text(dir / "recipe.json",
             R"({"ckpt": {"remote": "s3://bucket/demo"},
                 "log": {"sinks": [{"kind": "wandb", "project": "proj", "names": "tycho"}]}})");
  WandbStandIn server(dir.path());
  const Online environment(server.url());
  run_with_events(dir.path(), "online", 0);
  ASSERT_EQ(server.run().artifacts.size(), 1u);
  EXPECT_EQ(server.run().artifacts[0].at("manifest").at("contents").at("step-1").at("ref"),
            "s3://bucket/demo/step-1");
}

TEST(WandbUpload, AFailureOfAnyRequestLosesAndDoublesNothing) {
  for (const Fate fate : {Fate::kLoseRequest, Fate::kLoseAnswer})
    for (int bad = 0; bad < 14; ++bad) {
      TempDir dir;
      write_recipe(dir.path());
      WandbStandIn server(dir.path());
      const Online environment(server.url());
      run_with_events(dir.path(), "offline", 0);
      server.set_fate([&](int number) { return number < bad ? Fate::kAnswer : fate; });
      {
        WandbServer client(find_wandb_settings(""), 5);
        WandbUpload upload(client, dir.path(), wandb_files(dir / "wandb", wandb_run_id(dir.path())));
        const auto send = [&] {
          upload.send();
          upload.end();
        };
        EXPECT_THROW(send(), Error) << bad;
      }
      server.set_fate({});
      sync_wandb(dir.path());
      const StoredRun run = server.run();
      EXPECT_EQ(run.history.size(), 2u);
      EXPECT_EQ(run.events.size(), 2u);
      EXPECT_EQ(run.artifacts.size(), 2u);
      std::set<std::string>
          alerts;  // one whose answer was lost is sent again, and W&B shows it once a minute
      for (const Json& alert : run.alerts) alerts.insert(alert.at("title"));
      EXPECT_EQ(alerts.size(), 1u) << bad;
      for (const Json& artifact : run.artifacts) EXPECT_EQ(artifact.at("state"), "COMMITTED") << bad;
    }
}

TEST(WandbUpload, AServerWithoutAlertsAndArtifactsGetsTheRows) {
  TempDir dir;
  write_recipe(dir.path());
  WandbStandIn server(dir.path());
  server.forget_events();
  const Online environment(server.url());
  run_with_events(dir.path(), "online", 0);
  EXPECT_EQ(server.run().history.size(), 2u);
  EXPECT_EQ(server.run().exit_codes, std::vector<int>{0});
}

}  // namespace
}  // namespace tycho
