// Tests of the table of a run.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/trainer/loggers/loggers_fixture.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

std::vector<SinkConfig> csv(const std::string& file = "") {
  CsvSinkConfig config;
  config.file = file;
  return {SinkConfig{{config}}};
}

std::vector<std::string> cells_of(const std::string& row) {
  std::vector<std::string> cells(1);
  for (const char c : row) {
    if (c == ',')
      cells.emplace_back();
    else
      cells.back() += c;
  }
  return cells;
}

/// The step and one column of every row.
std::vector<std::string> column(const std::string& file, const std::string& name) {
  const std::vector<std::string> lines = lines_of(text_of(file));
  const std::vector<std::string> header = cells_of(lines.at(0));
  const auto at = static_cast<size_t>(std::find(header.begin(), header.end(), name) - header.begin());
  std::vector<std::string> values;
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> cells = cells_of(lines[i]);
    EXPECT_EQ(cells.size(), header.size()) << lines[i];
    values.push_back(cells.at(0) + ":" + cells.at(at));
  }
  return values;
}

using Values = std::vector<std::string>;

TEST(CsvSink, HasARowForEachRecordAndAColumnForEachNumber) {
  TempDir dir;
  EXPECT_TRUE(run_attempt(dir.path(), csv(), {0, 2}).warnings.empty());
  EXPECT_EQ(column(dir / "metrics.csv", "loss"), (Values{"1:1.1", "2:2.1"}));
  EXPECT_EQ(column(dir / "metrics.csv", "tokens"), (Values{"1:524288", "2:1048576"}));
}

// pandas and every spreadsheet read these words as numbers.
TEST(CsvSink, WritesWhatIsNotFiniteAsWords) {
  TempDir dir;
  LogConfig log;
  log.sinks = csv();
  {
    const auto reporter = make_run_reporter(dir.path(), log, nullptr);
    reporter->run_start(some_run());
    reporter->metric(1, "x", -NAN);
    reporter->metric(2, "x", INFINITY);
    reporter->metric(3, "x", -INFINITY);
    reporter->run_end("done", {});
  }
  EXPECT_EQ(column(dir / "metrics.csv", "x"), (Values{"1:nan", "2:inf", "3:-inf"}));
}

TEST(CsvSink, GetsAColumnWhenANumberIsNew) {
  TempDir dir;
  LogConfig log;
  log.sinks = csv();
  const auto reporter = make_run_reporter(dir.path(), log, nullptr);
  reporter->run_start(some_run());
  reporter->step(some_step(1), true);
  reporter->metric(1, "eval.val.loss", 2.5);
  reporter->step(some_step(2), true);
  reporter->run_end("done", {});
  EXPECT_EQ(column(dir / "metrics.csv", "eval.val.loss").at(1), "1:2.5");
  EXPECT_EQ(lines_of(text_of(dir / "metrics.csv")).size(), 4u);
}

TEST(CsvSink, QuotesNamesAndReadsThemAgain) {
  TempDir dir;
  LogConfig log;
  log.sinks = csv();
  for (int attempt = 1; attempt <= 2; ++attempt) {
    const auto reporter = make_run_reporter(dir.path(), log, nullptr);
    reporter->run_start(some_run());
    reporter->metric(attempt, "odd, \"name\"\n", attempt);
    reporter->run_end("done", {});
  }
  const std::vector<std::string> lines = lines_of(text_of(dir / "metrics.csv"));
  ASSERT_EQ(lines.size(), 2u);  // the second attempt began anew
  EXPECT_EQ(lines[0], "step,time,\"odd, \"\"name\"\" \"");
  EXPECT_TRUE(lines[1].starts_with("2,") && lines[1].ends_with(",2")) << lines[1];
}

TEST(CsvSink, StepsThatAreTrainedAgainReplaceTheLostOnes) {
  TempDir dir;
  run_attempt(dir.path(), csv(), {0, 4, ""});
  std::ofstream(dir / "metrics.csv", std::ios::app) << "5,17";  // cut by a kill
  run_attempt(dir.path(), csv(), {2, 4});
  EXPECT_EQ(column(dir / "metrics.csv", "loss"), (Values{"1:1.1", "2:2.1", "3:3.2", "4:4.2"}));
}

TEST(CsvSink, KeepsARunApartFromOthers) {
  TempDir dir, other;
  run_attempt(dir.path(), csv(dir / "tables/{run_name}.csv"), {0, 1});
  EXPECT_EQ(column(dir / "tables/mpt-125m.csv", "loss"), Values{"1:1.1"});
  const std::string before = text_of(dir / "tables/mpt-125m.csv");
  EXPECT_THROW(run_attempt(other.path(), csv(dir / "tables/{run_name}.csv"), {0, 1}), Error);
  EXPECT_EQ(text_of(dir / "tables/mpt-125m.csv"), before);
}

TEST(CsvSink, LeavesAFileAloneThatIsNotATable) {
  TempDir dir;
  write_text(dir / "notes", "my notes\n");
  EXPECT_THROW(run_attempt(dir.path(), csv(dir / "notes"), {0, 1}), Error);
  EXPECT_EQ(text_of(dir / "notes"), "my notes\n");
}

}  // namespace
}  // namespace tycho
