// A run read while it grows is the run read whole.
#include "trainer/report/growing_run.h"

#include <filesystem>
#include <map>
#include <random>
#include <utility>

#include "tests/trainer/report/report_fixture.h"
#include "trainer/base/error.h"
#include "trainer/report/run_table.h"

namespace tycho {
namespace {

void expect_same(const RunSummary& got, const RunSummary& wanted) {
  EXPECT_EQ(runs_json({got}).dump(), runs_json({wanted}).dump());
  ASSERT_EQ(got.curves.size(), wanted.curves.size());
  for (const auto& [name, curve] : wanted.curves) {
    SCOPED_TRACE(name);
    const ThinCurve& other = got.curve(name);
    EXPECT_EQ(other.x, curve.x);
    EXPECT_EQ(other.low, curve.low);
    EXPECT_EQ(other.high, curve.high);
    EXPECT_EQ(other.num_finite, curve.num_finite);
    ASSERT_EQ(other.mean.size(), curve.mean.size());
    for (size_t i = 0; i < curve.mean.size(); ++i) ASSERT_DOUBLE_EQ(other.mean[i], curve.mean[i]) << i;
  }
  EXPECT_EQ(got.texts.size(), wanted.texts.size());
  EXPECT_EQ(got.tokens_by_step.y.back(), wanted.tokens_by_step.y.back());
  EXPECT_EQ(got.seconds_by_step.y.back(), wanted.seconds_by_step.y.back());
}

/// The lines of the two files of a run, in the order in which it wrote them.
struct Lines {
  std::vector<std::pair<std::string, std::string>> lines;  // file, text
  double time = 1000;

  void start(int64_t attempt, int64_t first_step, bool says_so) {
    Json facts = {{"run_name", "a"}, {"num_ranks", 2}, {"total_steps", 9000}};
    if (says_so) facts["first_step"] = first_step;
    time += 50;
    add("events.jsonl", {{"time", time},
                         {"attempt", attempt},
                         {"step", first_step},
                         {"kind", "run_start"},
                         {"facts", facts}});
  }
  void steps(int64_t attempt, int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) {
      time += 0.5;
      const double loss = 1.0 + static_cast<double>((step * 7919 + attempt) % 1000);
      add("metrics.jsonl", {{"time", time},
                            {"attempt", attempt},
                            {"step", step},
                            {"tokens", step * 10},
                            {"loss", loss},
                            {"tokens_per_s", loss * 3},
                            {"step_s", 2},
                            {"data_wait_s", 0.5}});
      if (step % 500 == 0)
        add("metrics.jsonl", {{"time", time}, {"attempt", attempt}, {"step", step}, {"eval.loss", loss}});
    }
  }
  void add(const std::string& file, const Json& record) { lines.emplace_back(file, record.dump() + "\n"); }
};

/// Returns a run that was killed and resumed several times, once far back.
Lines killed_run(bool says_where_it_begins) {
  Lines run;
  run.start(1, 0, says_where_it_begins);
  run.steps(1, 1, 5200);
  run.start(2, 5000, says_where_it_begins);
  run.steps(2, 5001, 5100);
  run.start(3, 5000, says_where_it_begins);  // killed before its first step
  run.start(4, 2750, says_where_it_begins);
  run.steps(4, 2751, 9000);
  run.start(5, 8999, says_where_it_begins);
  run.steps(5, 9000, 9000);
  return run;
}

void append(const std::string& folder, const std::string& file, const std::string& text) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/" + file, std::ios::app) << text;
}

TEST(GrowingRun, ARunReadWhileItGrowsIsTheRunReadWhole) {
  for (const bool says : {true, false}) {
    SCOPED_TRACE(says);
    RunFolders runs;
    std::mt19937 random(5);
    GrowingRun reader(runs / "a", {"*"});
    size_t next_look = 1, num_looks = 0;
    std::map<std::string, std::string> written;
    const Lines run = killed_run(says);
    for (size_t i = 0; i < run.lines.size(); ++i) {
      const auto& [file, text] = run.lines[i];
      const size_t half = i == next_look ? random() % text.size() : 0;
      written[file] += text.substr(0, half);
      if (i == next_look) {
        for (auto& [name, more] : written) append(runs / "a", name, std::exchange(more, ""));
        reader.update(), ++num_looks, next_look += 1 + random() % 700;
      }
      written[file] += text.substr(half);
    }
    for (const auto& [name, more] : written) append(runs / "a", name, more);
    EXPECT_TRUE(reader.update());
    EXPECT_FALSE(reader.update()) << "nothing new";
    EXPECT_GT(num_looks, 10u);
    expect_same(reader.summary(), summarize_run(runs / "a", {"*"}));
    EXPECT_EQ(reader.summary().curve("loss").num_points, 9000);
    EXPECT_EQ(reader.summary().curve("eval.loss").num_points, 18);
  }
}

TEST(GrowingRun, StepsTrainedAnewReplaceTheEarlierOnesInEveryCurve) {
  RunFolders runs;
  Lines run;
  run.start(1, 0, true);
  run.steps(1, 1, 1200);
  run.start(2, 600, true);
  run.steps(2, 601, 700);
  for (const auto& [file, text] : run.lines) append(runs / "a", file, text);
  const RunSummary summary = summarize_run(runs / "a");
  EXPECT_EQ(summary.curve("loss").x.back(), 700);
  EXPECT_EQ(summary.curve("loss").num_points, 700);
  EXPECT_EQ(summary.curve("eval.loss").x, std::vector<double>{500})
      << "that of step 1000 is of other weights";
}

TEST(GrowingRun, AFileThatWasCutOrReplacedIsReadAgain) {
  RunFolders runs;
  runs.add_run("a", 1, 1, 100);
  GrowingRun reader(runs / "a", {"*"});
  EXPECT_TRUE(reader.update());
  EXPECT_EQ(reader.summary().step, 8);
  const std::string metrics = runs / "a/metrics.jsonl";
  std::filesystem::resize_file(metrics, std::filesystem::file_size(metrics) / 2);
  EXPECT_TRUE(reader.update());
  expect_same(reader.summary(), summarize_run(runs / "a", {"*"}));
  EXPECT_LT(reader.summary().step, 8);
  for (const char* file : {"a/metrics.jsonl", "a/events.jsonl"}) std::filesystem::remove(runs / file);
  EXPECT_THROW(reader.update(), Error) << "no run is left";
  runs.add_run("a", 3, 2, 50);
  runs.add_step("a", 1020, 1, 9, 0.25, 50);
  EXPECT_TRUE(reader.update());
  expect_same(reader.summary(), summarize_run(runs / "a", {"*"}));
  EXPECT_EQ(reader.summary().num_ranks, 3);
}

TEST(GrowingRun, EndsAtTheStepThatIsAskedFor) {
  RunFolders runs;
  runs.add_run("parent", 1, 1, 100);
  GrowingRun reader(runs / "parent", {}, 3);
  reader.update();
  EXPECT_EQ(reader.summary().curve("loss").x, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(reader.summary().tokens_by_step.x.back(), 3);
}

TEST(GrowingRun, EvaluationsBesideTheRunJoinItsOwn) {
  RunFolders runs;
  runs.add_run("a", 1, 1, 100);
  runs.add("a", "metrics.jsonl", {{"time", 1008}, {"attempt", 1}, {"step", 8}, {"eval.loss", 2}});
  runs.add("a", "evals.jsonl", {{"time", 1020}, {"step", 4}, {"eval.loss", 3}});
  GrowingRun reader(runs / "a");
  reader.update();
  runs.add("a", "evals.jsonl", {{"time", 1021}, {"step", 6}, {"eval.loss", 2.5}});
  reader.update();
  EXPECT_EQ(reader.summary().curve("eval.loss").x, (std::vector<double>{4, 6, 8}));
  EXPECT_EQ(reader.summary().curve("eval.loss").mean, (std::vector<double>{3, 2.5, 2}));
}

// `tycho eval --follow` with and without --ema writes one file, and the run itself evaluates one of both.
TEST(GrowingRun, TheAverageOfTheWeightsHasCurvesOfItsOwn) {
  for (const bool has_own : {false, true})
    for (const bool own_is_average : {false, true}) {
      RunFolders runs;
      runs.add_run("a", 1, 1, 100);
      runs.add("a", "evals.jsonl", {{"time", 1020}, {"step", 4}, {"weights", "ema"}, {"eval.loss", 3}});
      runs.add("a", "evals.jsonl", {{"time", 1021}, {"step", 4}, {"eval.loss", 5}});
      Json facts = {{"loss", 2}, {"total", true}};
      if (own_is_average) facts["weights"] = "ema";
      if (has_own) {
        runs.add("a", "metrics.jsonl", {{"time", 1008}, {"attempt", 1}, {"step", 8}, {"eval.loss", 2}});
        runs.add("a", "events.jsonl",
                 {{"time", 1008}, {"attempt", 1}, {"step", 8}, {"kind", "eval"}, {"facts", facts}});
      }
      const RunSummary run = summarize_run(runs / "a", {"*"});
      const bool average_is_main = has_own && own_is_average;
      const ThinCurve& main = run.curve("eval.loss");
      EXPECT_EQ(main.mean.front(), average_is_main ? 3 : 5);
      EXPECT_EQ(main.mean.back(), has_own ? 2 : 5);
      EXPECT_EQ(run.curve(average_is_main ? "eval.trained.loss" : "eval.ema.loss").mean,
                std::vector<double>{average_is_main ? 5.0 : 3.0});
      EXPECT_EQ(run.eval_loss, main.mean.back());
    }
}

}  // namespace
}  // namespace tycho
