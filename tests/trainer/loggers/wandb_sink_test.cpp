// Tests of the offline runs of a run and its attempts.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/trainer/loggers/loggers_fixture.h"
#include "trainer/base/error.h"
#include "trainer/loggers/wandb_entry.h"

namespace tycho {
namespace {

std::vector<SinkConfig> wandb(const std::string& dir = "") {
  WandbSinkConfig config;
  config.project = "proj";
  config.dir = dir;
  return {SinkConfig{{config}}};
}

TEST(WandbSink, WritesAFolderThatSyncTakes) {
  TempDir dir;
  write_text(dir / "recipe.json", R"({"seed": 17})");
  EXPECT_TRUE(run_attempt(dir.path(), wandb(), {0, 3}).warnings.empty());
  const std::vector<std::string> files = files_below(dir.path(), ".wandb");
  ASSERT_EQ(files.size(), 1u);
  std::string id = text_of(dir / "wandb_run_id.txt");
  id.pop_back();
  EXPECT_NE(files[0].find("/wandb/offline-run-"), std::string::npos);
  EXPECT_TRUE(files[0].ends_with("-" + id + "/run-" + id + ".wandb")) << files[0];
  const std::string file = text_of(files[0]);
  EXPECT_EQ(end_of_wandb_files({files[0]}).step, 3);
  for (const char* part : {"proj", "mpt-125m", "seed", "17", "3.1"})
    EXPECT_GE(count_of(file, part), 1) << part;
}

TEST(WandbSink, ResumesTheRunAndDoesNotRepeatSteps) {
  TempDir dir;
  run_attempt(dir.path(), wandb(), {0, 4, "stopped by SIGTERM after step 4"});
  run_attempt(dir.path(), wandb(), {2, 6});
  const std::vector<std::string> files = files_below(dir.path(), ".wandb");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(std::filesystem::path(files[0]).filename(), std::filesystem::path(files[1]).filename());
  const std::string second = text_of(files[1]);
  // A value's text follows its length; a time may contain the same digits.
  EXPECT_EQ(count_of(second,
                     "\x03"
                     "4.2"),
            0);
  EXPECT_EQ(count_of(second,
                     "\x03"
                     "5.2"),
            2);  // in the summary and in the history
  EXPECT_EQ(end_of_wandb_files({files[1]}).step, 6);
}

TEST(WandbSink, AStepHasOneRow) {
  TempDir dir;
  LogConfig log;
  log.sinks = wandb(dir / "shared");
  const auto reporter = make_run_reporter(dir.path(), log, nullptr);
  reporter->run_start(some_run());
  reporter->step(some_step(1), true);
  reporter->metric(1, "eval.loss", 2.25);
  reporter->step(some_step(2), true);
  reporter->run_end("done", {});
  const std::string file = text_of(files_below(dir / "shared", ".wandb").at(0));
  EXPECT_EQ(count_of(file,
                     "\x04"
                     "2.25"),
            2);
  EXPECT_EQ(count_of(file, "_step"), 4);
}

TEST(WandbSink, ATableOfAStepIsAFileThatItsRowNames) {
  TempDir dir;
  LogConfig log;
  log.sinks = wandb();
  const auto reporter = make_run_reporter(dir.path(), log, nullptr);
  reporter->run_start(some_run());
  reporter->step(some_step(1), true);
  reporter->table(1, some_table("words"));
  reporter->step(some_step(2), true);
  reporter->run_end("done", {});
  const std::string path = files_below(dir.path(), ".table.json").at(0);
  EXPECT_NE(path.find("/files/media/table/1_"), std::string::npos) << path;
  EXPECT_EQ(Json::parse(text_of(path)), split_form(some_table("words")));
  const std::string file = text_of(files_below(dir.path(), ".wandb").at(0));
  EXPECT_EQ(count_of(file, "table-file"), 2);  // in the summary and in the history
  EXPECT_EQ(count_of(file, "media/table/" + std::filesystem::path(path).filename().string()), 3);
  EXPECT_EQ(count_of(file, "_step"), 4);  // no row of its own
}

TEST(WandbSink, RefusesAnIdThatIsNone) {
  TempDir dir;
  write_text(dir / "wandb_run_id.txt", "../x\n");
  EXPECT_THROW(run_attempt(dir.path(), wandb(), {0, 1}), Error);
}

}  // namespace
}  // namespace tycho
