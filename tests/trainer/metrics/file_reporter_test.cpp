// Tests of the files of a run: records, attempts, torn lines, a full disk.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>

#include "tests/trainer/metrics/fixtures.h"
#include "trainer/base/error.h"
#include "trainer/base/regex.h"
#include "trainer/loggers/sink.h"

namespace tycho {
namespace {

std::vector<Json> records_of(const std::string& path) {
  std::vector<Json> records;
  for (const std::string& line : lines_of(text_of(path))) records.push_back(Json::parse(line));
  return records;
}

/// All files of a run folder, without what make_tee does about failures.
class Recorder final : public Reporter {
 public:
  explicit Recorder(std::vector<std::unique_ptr<Reporter>> parts) : parts_(std::move(parts)) {}
  void run_start(const RunInfo& run) override {
    for (auto& part : parts_) part->run_start(run);
  }
  void step(const StepMetrics& metrics, bool record) override {
    for (auto& part : parts_) part->step(metrics, record);
  }
  void event(const std::string& kind, const std::string& text, const Json& facts) override {
    for (auto& part : parts_) part->event(kind, text, facts);
  }
  void run_end(const std::string& reason, std::optional<ExitCode> failure) override {
    for (auto& part : parts_) part->run_end(reason, failure);
  }

 private:
  std::vector<std::unique_ptr<Reporter>> parts_;
};

std::unique_ptr<Reporter> make_recorder(const std::string& dir, FileOps& files = real_files()) {
  std::vector<std::unique_ptr<Reporter>> parts = make_sink_reporters(LogConfig().sinks, dir, files);
  parts.push_back(make_file_reporter(dir, files));
  return std::make_unique<Recorder>(std::move(parts));
}

void train(const std::string& dir, int64_t first_step, int64_t last_step) {
  const auto reporter = make_recorder(dir);
  RunInfo run = some_run();
  run.first_step = first_step;
  reporter->run_start(run);
  for (int64_t step = first_step + 1; step <= last_step; ++step) reporter->step(some_step(step), true);
}

TEST(FileReporterTest, RecordsAStepWithEveryNumber) {
  TempDir dir;
  train(dir.path(), 0, 1);
  const std::vector<Json> records = records_of(dir / "metrics.jsonl");
  ASSERT_EQ(records.size(), 1u);
  Json record = records[0];
  EXPECT_GT(record["time"].get<double>(), 1.7e9);
  record.erase("time");
  const Json expected = {{"step", 1},
                         {"attempt", 1},
                         {"tokens", 524288},
                         {"samples", 64},
                         {"epoch", 0},
                         {"loss", 3.4125},
                         {"lr", 5.8e-4},
                         {"grad_norm", 0.71},
                         {"step_s", 1.25},
                         {"data_wait_s", 0.00375},
                         {"comm_wait_s", 0.0125},
                         {"comm_s", 0.25},
                         {"tokens_per_s", 419430.4},
                         {"tflops", 406.8},
                         {"tflops_causal", 360.7},
                         {"mfu", 0.4112},
                         {"mfu_causal", 0.3642},
                         {"memory_bytes", 61000000000},
                         {"eta_s", 4450.0}};
  EXPECT_EQ(record, expected);
}

TEST(FileReporterTest, LeavesOutStepsThatAreNotRecords) {
  TempDir dir;
  const auto reporter = make_recorder(dir.path());
  reporter->step(some_step(1), false);
  EXPECT_EQ(text_of(dir / "metrics.jsonl"), "");
}

TEST(FileReporterTest, HasEveryRecordInTheFileAtOnce) {
  TempDir dir;
  const auto reporter = make_recorder(dir.path());
  reporter->step(some_step(1), true);
  EXPECT_EQ(records_of(dir / "metrics.jsonl").size(), 1u);
  reporter->event("stop", "SIGTERM", {{"signal", 15}});
  EXPECT_EQ(records_of(dir / "events.jsonl").size(), 1u);
}

TEST(FileReporterTest, RecordsEventsWithTheirStepAndFacts) {
  TempDir dir;
  const auto reporter = make_recorder(dir.path());
  reporter->run_start(some_run());
  reporter->step(some_step(8), false);
  reporter->event("checkpoint", "step 8 saved", {{"num_bytes", 1500}});
  reporter->run_end("done", {});
  const std::vector<Json> events = records_of(dir / "events.jsonl");
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["kind"], "run_start");
  EXPECT_EQ(events[0]["facts"]["num_params"], 124440576);
  EXPECT_EQ(events[0]["facts"]["pins"], Json({"seq_len=8192"}));
  EXPECT_EQ(events[1]["kind"], "checkpoint");
  EXPECT_EQ(events[1]["step"], 8);
  EXPECT_EQ(events[1]["text"], "step 8 saved");
  EXPECT_EQ(events[1]["facts"]["num_bytes"], 1500);
  EXPECT_EQ(events[2]["kind"], "run_end");
  EXPECT_FALSE(events[2].contains("facts"));
}

TEST(FileReporterTest, KeepsOneLineOfALaterStartThatEndsBeforeItsFirstStep) {
  TempDir dir;
  train(dir.path(), 0, 3);
  const std::string events = text_of(dir / "events.jsonl"), log = text_of(dir / "log.txt");
  {
    const auto reporter = make_file_reporter(dir.path());
    RunInfo run = some_run();
    run.first_step = 3;
    reporter->run_start(run);
    reporter->event("resume", "resumed from step 3", {{"step", 3}});
    reporter->run_end("failed: no\nweights", ExitCode::kUnusable);
  }
  EXPECT_EQ(text_of(dir / "events.jsonl").rfind(events, 0), 0U);
  EXPECT_EQ(text_of(dir / "log.txt").rfind(log, 0), 0U);
  ASSERT_EQ(lines_of(text_of(dir / "log.txt")).size(), lines_of(log).size() + 1);
  ASSERT_EQ(records_of(dir / "events.jsonl").size(), lines_of(events).size() + 1);
  const Json left = records_of(dir / "events.jsonl").back();
  EXPECT_EQ(left["kind"], "not_started");
  EXPECT_EQ(left["facts"], (Json{{"exit_code", 12}, {"first_step", 3}}));
  const auto reporter = make_file_reporter(dir.path());
  reporter->run_start(some_run());
  reporter->event("eval", "loss 2.5", {{"loss", 2.5}});
  reporter->run_end("closed", {});
  EXPECT_EQ(records_of(dir / "events.jsonl").back()["kind"], "run_end") << "an evaluation is a result";
  EXPECT_EQ(records_of(dir / "events.jsonl").size(), lines_of(events).size() + 4);
}

TEST(FileReporterTest, WritesTablesIntoTheirFileAndWarnsWhereItCannot) {
  TempDir dir;
  const NamedTable table = {
      "icl/words", "answers.jsonl", {"item"}, {{{"item", 1}, {"text", "\xff"}}, {{"item", 2}}}};
  {
    const auto reporter = make_file_reporter(dir.path());
    reporter->run_start(some_run());
    reporter->table(7, table);
    reporter->table(8, table);
  }
  const std::vector<std::string> lines = lines_of(text_of(dir / "answers.jsonl"));
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(Json::parse(lines[0]), (Json{{"step", 7}, {"item", 1}, {"text", "\xef\xbf\xbd"}}));
  EXPECT_EQ(Json::parse(lines[3]), (Json{{"step", 8}, {"item", 2}}));
  EXPECT_EQ(text_of(dir / "events.jsonl").find("answers"), std::string::npos);
  std::filesystem::remove(dir / "answers.jsonl");
  std::filesystem::create_directory(dir / "answers.jsonl");
  EXPECT_THROW(make_file_reporter(dir.path())->table(9, table), Error);
}

TEST(FileReporterTest, GoesBackToTheStepOfTheCheckpointThatCouldBeRead) {
  TempDir dir;
  RunInfo run = some_run();
  run.first_step = 12;
  const auto reporter = make_recorder(dir.path());
  reporter->run_start(run);
  reporter->event("resume", "resumed from step 8", {{"step", 8}});
  reporter->event("stop", "SIGTERM", {{"signal", 15}});
  for (const Json& event : records_of(dir / "events.jsonl"))
    EXPECT_EQ(event["step"], event["kind"] == "run_start" ? 12 : 8) << event;
}

TEST(FileReporterTest, AppendsAfterAResumeAndNumbersTheAttempts) {
  TempDir dir;
  train(dir.path(), 0, 3);
  train(dir.path(), 2, 4);
  std::vector<std::pair<int, int>> seen;
  for (const Json& record : records_of(dir / "metrics.jsonl"))
    seen.emplace_back(record["attempt"], record["step"]);
  EXPECT_EQ(seen, (std::vector<std::pair<int, int>>{{1, 1}, {1, 2}, {1, 3}, {2, 3}, {2, 4}}));
}

TEST(FileReporterTest, StartsANewLineAfterOneThatAKilledProcessTore) {
  TempDir dir;
  train(dir.path(), 0, 1);
  write_text(dir / "events.jsonl", text_of(dir / "events.jsonl") + "{\"time\": 1, \"att");
  write_text(dir / "metrics.jsonl", text_of(dir / "metrics.jsonl") + "{\"step\"");
  train(dir.path(), 1, 2);
  const std::vector<std::string> lines = lines_of(text_of(dir / "metrics.jsonl"));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1], "{\"step\"");
  EXPECT_EQ(Json::parse(lines[2])["attempt"], 2);
}

TEST(FileReporterTest, LogsLinesForPeopleWithTheTime) {
  TempDir dir;
  train(dir.path(), 0, 1);
  const std::vector<std::string> lines = lines_of(text_of(dir / "log.txt"));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_TRUE(Regex(R"(^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d run=mpt-125m )").is_found_in(lines[0])) << lines[0];
  for (const std::string& line : lines)
    EXPECT_TRUE(Regex(R"(^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [a-z_]+=)").is_found_in(line)) << line;
  EXPECT_TRUE(Regex(R"( step=1    loss=)").is_found_in(lines[4])) << lines[4];
}

TEST(FileReporterTest, TakesTextThatIsNotUtf8AndLossesThatAreNotNumbers) {
  TempDir dir;
  const auto reporter = make_recorder(dir.path());
  reporter->event("warning", "file \xff.mds", nullptr);
  StepMetrics step = some_step();
  step.loss = std::nan("");
  reporter->step(step, true);
  EXPECT_EQ(records_of(dir / "events.jsonl")[0]["text"], "file \ufffd.mds");
  EXPECT_TRUE(records_of(dir / "metrics.jsonl")[0]["loss"].is_null());
}

TEST(FileReporterTest, SaysWhichFileCannotBeOpened) {
  TempDir dir;
  try {
    make_recorder(dir / "absent");
    FAIL() << "expected an error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kStorage);
    EXPECT_NE(std::string(error.what()).find(dir / "absent"), std::string::npos) << error.what();
  }
}

/// A disk that is full while `*full`: it takes 5 bytes of a write.
class FullDisk : public FileOps {
 public:
  explicit FullDisk(const bool& full) : full_(full) {}
  std::unique_ptr<OutputFile> append(const std::string& path) override {
    return std::make_unique<File>(real_files().append(path), full_);
  }

 private:
  struct File : OutputFile {
    File(std::unique_ptr<OutputFile> file, const bool& is_full) : inner(std::move(file)), full(is_full) {}
    void write(const void* data, size_t num_bytes) override {
      inner->write(data, full ? 5 : num_bytes);
      if (full) fail(ExitCode::kStorage, "[files] cannot write: No space left on device");
    }
    void sync() override { inner->sync(); }
    void close() override { inner->close(); }
    std::unique_ptr<OutputFile> inner;
    const bool& full;
  };
  const bool& full_;
};

TEST(FileReporterTest, KeepsLinesWholeWhenTheDiskWasFullForAWhile) {
  TempDir dir;
  bool full = false;
  FullDisk disk(full);
  const auto reporter = make_recorder(dir.path(), disk);
  reporter->step(some_step(1), true);
  full = true;
  EXPECT_THROW(reporter->step(some_step(2), true), Error);
  full = false;
  reporter->step(some_step(3), true);
  const std::vector<std::string> lines = lines_of(text_of(dir / "metrics.jsonl"));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(Json::parse(lines[0])["step"], 1);
  EXPECT_EQ(Json::parse(lines[2])["step"], 3);
}

}  // namespace
}  // namespace tycho
