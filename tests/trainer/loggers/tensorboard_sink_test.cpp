// Tests of the event files of a run and of its attempts.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/trainer/loggers/loggers_fixture.h"
#include "trainer/base/error.h"
#include "trainer/loggers/event_file.h"

namespace tycho {
namespace {

std::vector<SinkConfig> tensorboard(const std::string& dir = "") {
  TensorboardSinkConfig config;
  config.dir = dir;
  return {SinkConfig{{config}}};
}

/// Returns a tag as an event has it: field 1 of a summary's value.
std::string tagged(const std::string& tag) {
  return std::string{'\x0a', static_cast<char>(tag.size())} + tag;
}

TEST(TensorboardSink, WritesAllStepsAndTheRecipe) {
  TempDir dir;
  write_text(dir / "recipe.lua", "return r");
  const Told told = run_attempt(dir.path(), tensorboard(), {0, 3});
  EXPECT_TRUE(told.warnings.empty());
  const std::vector<std::string> files = files_below(dir.path(), "tfevents");
  ASSERT_EQ(files.size(), 1u);
  const std::string events = text_of(files[0]);
  EXPECT_EQ(count_of(events, "\x0atrain/loss"), 3);
  EXPECT_EQ(count_of(events, "```lua\nreturn r\n```"), 1);
  EXPECT_EQ(events.find("brain.Event:2"), 12u + 9 + 2);
}

TEST(TensorboardSink, GivesEachRunAFolderOfItsNameInAFolderOfMany) {
  TempDir dir;
  run_attempt(dir.path(), tensorboard(dir / "many/tb"), {0, 1});
  EXPECT_EQ(files_below(dir / "many/tb/mpt-125m", "tfevents").size(), 1u);
}

TEST(TensorboardSink, GroupsTagsAndNamesARunByItsFolder) {
  TempDir dir;
  {
    Told told;
    LogConfig log;
    log.sinks = tensorboard();
    const auto reporter = make_run_reporter(dir.path(), log, std::make_unique<ToldReporter>(told));
    RunInfo run = some_run();
    run.run_dir = dir.path();
    reporter->run_start(run);
    reporter->step(some_step(1), true);
    for (const char* name : {"eval.val.loss", "eval.loss", "own.name"}) reporter->metric(1, name, 2.5);
    reporter->run_end("done", {});
  }
  const std::string file = files_below(dir.path(), "tfevents").at(0);
  EXPECT_EQ(std::filesystem::path(file).parent_path(), dir.path());
  const std::string events = text_of(file);
  for (const char* tag : {"train/loss", "train/lr", "train/grad_norm", "train/tokens", "perf/tokens_per_s",
                          "perf/step_s", "perf/mfu", "perf/memory_bytes", "eval/val/loss", "eval/loss"})
    EXPECT_EQ(count_of(events, tagged(tag)), 1) << tag;
  EXPECT_EQ(count_of(events, tagged("own.name")), 1) << "a callback's name stays";
  for (const char* tag : {"loss", "lr", "tokens_per_s", "eval.loss"})
    EXPECT_EQ(count_of(events, tagged(tag)), 0) << tag;
}

TEST(TensorboardSink, NamesOfAnotherSystemStayAsTheyAre) {
  TempDir dir;
  std::vector<SinkConfig> sinks = tensorboard();
  std::get<TensorboardSinkConfig>(sinks[0].value).names = MetricNames::kTorchtitan;
  run_attempt(dir.path(), sinks, {0, 1});
  const std::string events = text_of(files_below(dir.path(), "tfevents").at(0));
  EXPECT_EQ(count_of(events, tagged("loss_metrics/global_avg_loss")), 1);
  EXPECT_EQ(count_of(events, tagged("lr")), 1);
  EXPECT_EQ(count_of(events, tagged("train/loss")), 0);
}

// Until 2026-11 tags had no groups, and the files were in a folder of their own.
TEST(TensorboardSink, AResumedRunKeepsItsTagsAndItsFolder) {
  TempDir dir;
  run_attempt(dir.path(), tensorboard(), {0, 2});
  const std::string first = files_below(dir.path(), "tfevents").at(0);
  make_dirs(real_files(), dir / "tensorboard");
  const std::string moved = dir / "tensorboard/" + std::filesystem::path(first).filename().string();
  write_text(moved, version_event(0) + numbers_event({1, 0, {{"loss", 2.5}}}));
  std::filesystem::remove(first);
  run_attempt(dir.path(), tensorboard(), {2, 4});
  const std::vector<std::string> files = files_below(dir / "tensorboard", "tfevents");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files_below(dir.path(), "tfevents").size(), 2u);
  EXPECT_EQ(count_of(text_of(files[1]), tagged("loss")), 2);
  EXPECT_EQ(count_of(text_of(files[1]), tagged("train/loss")), 0);
}

/// How often a file tells readers to forget what they have of this step and of later ones.
int restarts_at(const std::string& file, int64_t step) {
  constexpr size_t kFrame = 12, kTime = 9, kChecksum = 4;
  const std::string event = restart_event(0, step);
  return count_of(text_of(file), event.substr(kFrame + kTime, event.size() - kFrame - kTime - kChecksum));
}

// TensorBoard's own readers do forget them (tests/golden/loggers/read_loggers.py). One of them takes the
// first restart of a run for its beginning.
TEST(TensorboardSink, ResumesInAFileThatReadersTakeLater) {
  TempDir dir;
  run_attempt(dir.path(), tensorboard(), {0, 4, ""});
  run_attempt(dir.path(), tensorboard(), {2, 5});
  const std::vector<std::string> files = files_below(dir.path(), "tfevents");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(count_of(text_of(files[0]), "\x0atrain/loss"), 4);
  EXPECT_EQ(count_of(text_of(files[1]), "\x0atrain/loss"), 3);
  EXPECT_EQ(restarts_at(files[0], 1), 1);
  EXPECT_EQ(restarts_at(files[1], 3), 1);
}

TEST(TensorboardSink, StartsOverWhenNothingWasSaved) {
  TempDir dir;
  run_attempt(dir.path(), tensorboard(), {0, 4, ""});
  run_attempt(dir.path(), tensorboard(), {0, 5});
  EXPECT_EQ(restarts_at(files_below(dir.path(), "tfevents").at(1), 1), 1);
}

TEST(TensorboardSink, DoesNotLetARunBeginWhoseFolderCannotBeWritten) {
  TempDir dir;
  write_text(dir / "file", "");
  try {
    run_attempt(dir.path(), tensorboard(dir / "file"), {0, 1});
    FAIL() << "began";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kStorage);
    EXPECT_TRUE(std::string(error.what()).starts_with("[log] t.log.tensorboard cannot start: "))
        << error.what();
    EXPECT_NE(std::string(error.what()).find(dir / "file"), std::string::npos) << error.what();
  }
}

TEST(TensorboardSink, ARunThatIsStartedAgainGoesOnWithoutIt) {
  TempDir dir;
  run_attempt(dir.path(), tensorboard(dir / "tb"), {0, 2});
  std::filesystem::remove_all(dir / "tb");
  write_text(dir / "tb", "");
  const Told told = run_attempt(dir.path(), tensorboard(dir / "tb"), {2, 4});
  ASSERT_EQ(told.warnings.size(), 1u);
  EXPECT_NE(told.warnings[0].find("t.log.tensorboard is switched off until the next start"),
            std::string::npos);
  EXPECT_EQ(told.end, "done");
}

}  // namespace
}  // namespace tycho
