// Tables of runs, with the figures of the second table of "Scale LLM Training with MosaicML" as an oracle.
#include "trainer/report/run_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace tycho {
namespace {

RunSummary run_of(int64_t nodes, double runtime_s, double tokens_per_s, double accuracy) {
  RunSummary run;
  run.name = "mpt-7b-dolly-sft-" + std::to_string(nodes);
  run.num_nodes = nodes;
  run.num_ranks = 8 * nodes;
  run.num_params = 6649286656;
  run.tokens = run.own_tokens = 1000000;
  run.runtime_s = runtime_s;
  run.tokens_per_s = tokens_per_s;
  run.accuracy = accuracy;
  return run;
}

std::vector<RunSummary> published() {
  return {run_of(1, 4708, 7124, 0.85), run_of(2, 1764, 13844, 0.84), run_of(4, 1101, 28959, 0.84),
          run_of(8, 815, 50708, 0.84)};
}

std::vector<std::string> column_of(const std::vector<std::vector<std::string>>& rows,
                                   const std::string& name) {
  const auto found = std::find(rows[0].begin(), rows[0].end(), name);
  std::vector<std::string> cells;
  if (found != rows[0].end())
    for (size_t i = 1; i < rows.size(); ++i)
      cells.push_back(rows[i][static_cast<size_t>(found - rows[0].begin())]);
  return cells;
}

TEST(RunTable, HasThePublishedSpeedUps) {
  const auto rows = run_table(published());
  // The last one is 5.77x there: cut, not rounded.
  EXPECT_EQ(column_of(rows, "speed-up"), (std::vector<std::string>{"1.00x", "2.67x", "4.28x", "5.78x"}));
  EXPECT_EQ(column_of(rows, "nodes"), (std::vector<std::string>{"1", "2", "4", "8"}));
  EXPECT_EQ(column_of(rows, "runtime").at(0), "1:18:28");
  EXPECT_EQ(column_of(rows, "accuracy").at(1), "0.8400");
}

TEST(RunTable, EfficiencyIsTheSpeedOfARank) {
  const std::vector<RunScaling> scaling = scaling_of(published());
  EXPECT_DOUBLE_EQ(scaling[0].efficiency.value(), 1);
  EXPECT_DOUBLE_EQ(scaling[3].efficiency.value(), 50708.0 / 8 / 7124);
}

TEST(RunTable, OnlyRunsOfTheSameWorkAreCompared) {
  std::vector<RunSummary> runs = published();
  runs.resize(2);
  runs[1].own_tokens = 2000000;
  EXPECT_FALSE(scaling_of(runs)[1].speed_up);
  EXPECT_TRUE(scaling_of(runs)[1].efficiency);
  runs[1].work = "another sequence length";
  EXPECT_FALSE(scaling_of(runs)[1].efficiency) << "a token costs something else";
  runs[1].work.clear();
  runs[1].num_params = 1;
  EXPECT_FALSE(scaling_of(runs)[1].efficiency);
  EXPECT_FALSE(scaling_of(runs)[0].efficiency);
}

TEST(RunTable, LeavesOutWhatNoRunHas) {
  RunSummary bare;
  bare.folder = "runs/x";
  const auto rows = run_table({bare});
  for (const char* name : {"MFU", "nodes", "speed-up", "tokens/s", "accuracy", "checkpoint"})
    EXPECT_TRUE(column_of(rows, name).empty()) << name;
  EXPECT_EQ(column_of(rows, "run").at(0), "runs/x");
  EXPECT_EQ(column_of(rows, "ended").at(0), "not yet");
  RunSummary other = bare;
  other.mfu = 0.4;
  EXPECT_EQ(column_of(run_table({bare, other}), "MFU"), (std::vector<std::string>{"-", "40.0 %"}));
}

TEST(RunTable, JsonHasEveryNumberInItsUnit) {
  const Json json = runs_json(published());
  EXPECT_EQ(json.at(1).at("num_nodes"), 2);
  EXPECT_DOUBLE_EQ(json.at(1).at("speed_up").get<double>(), 4708.0 / 1764);
  EXPECT_TRUE(json.at(1).at("mfu").is_null());
  RunSummary diverged;
  diverged.loss = NAN;
  EXPECT_TRUE(runs_json({diverged}).at(0).at("loss").is_null());
}

TEST(RunTable, TheCurveIsOverRanks) {
  std::vector<RunSummary> runs = published();
  std::reverse(runs.begin(), runs.end());
  runs.push_back(run_of(1, 9000, 3000, 0.8));  // slower, on as many ranks
  const Curve curve = scaling_curve(runs);
  EXPECT_EQ(curve.x, (std::vector<double>{8, 16, 32, 64}));
  EXPECT_EQ(curve.y, (std::vector<double>{7124, 13844, 28959, 50708}));
  EXPECT_TRUE(scaling_curve({runs[0]}).x.empty());
}

}  // namespace
}  // namespace tycho
