// Runs of MLflow in a folder. What is expected of it was read by MLflow itself
// (tests/golden/loggers/read_mlflow.py).
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "tests/trainer/loggers/loggers_fixture.h"
#include "trainer/base/error.h"
#include "trainer/loggers/mlflow_store.h"

namespace tycho {
namespace {

std::vector<SinkConfig> mlflow_in(const std::string& folder, const std::string& experiment = "words") {
  MlflowSinkConfig config;
  config.tracking_uri = folder;
  config.experiment = experiment;
  config.tags = {{"team", "a"}};
  return {SinkConfig{{config}}};
}

/// The run's folder in a store with one experiment and one run.
std::string run_in(const TempDir& dir) {
  std::string id = text_of(dir / "mlflow_run_id.txt");
  id.pop_back();
  for (const auto& entry : std::filesystem::directory_iterator(dir / "store"))
    if (std::filesystem::exists(entry.path() / id)) return (entry.path() / id).string();
  return "";
}

bool has_line_in(const std::string& path, const std::string& line) {
  const std::vector<std::string> lines = lines_of(text_of(path));
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

/// "value step" of each line of a metric: its time is not known.
std::vector<std::string> points_of(const std::string& run, const std::string& metric) {
  std::vector<std::string> points;
  for (const std::string& line : lines_of(text_of(run + "/metrics/" + metric)))
    points.push_back(line.substr(line.find(' ') + 1));
  return points;
}

TEST(MlflowFolder, HasTheRunWithItsRecipeAndNumbers) {
  TempDir dir;
  write_text(dir / "recipe.json",
             R"({"seed": 17, "model": {"kind": "mpt", "tied": true}, "list": [1], "e": ""})");
  EXPECT_TRUE(run_attempt(dir.path(), mlflow_in(dir / "store"), {0, 3}).warnings.empty());
  const std::string run = run_in(dir);
  ASSERT_NE(run, "");
  EXPECT_EQ(points_of(run, "loss"), (std::vector<std::string>{"1.1 1", "2.1 2", "3.1 3"}));
  EXPECT_EQ(text_of(run + "/params/model.kind"), "mpt");
  EXPECT_EQ(text_of(run + "/params/model.tied"), "true");
  EXPECT_EQ(text_of(run + "/params/list"), "[1]");
  EXPECT_EQ(text_of(run + "/params/e"), "\"\"");
  EXPECT_EQ(text_of(run + "/tags/team"), "a");
  EXPECT_EQ(text_of(run + "/tags/mlflow.runName"), "mpt-125m");
  EXPECT_TRUE(has_line_in(run + "/meta.yaml", "status: 3")) << text_of(run + "/meta.yaml");
  EXPECT_FALSE(has_line_in(run + "/meta.yaml", "end_time: null"));
  EXPECT_TRUE(has_line_in(std::filesystem::path(run).parent_path() / "meta.yaml", "name: \"words\""));
}

TEST(MlflowFolder, ResumesWithoutDoublePointsAndAfterATornLine) {
  TempDir dir;
  run_attempt(dir.path(), mlflow_in(dir / "store"), {0, 4, "stopped by SIGTERM after step 4"});
  const std::string run = run_in(dir);
  EXPECT_TRUE(has_line_in(run + "/meta.yaml", "status: 5"));
  write_text(run + "/metrics/loss", text_of(run + "/metrics/loss") + "17000");
  run_attempt(dir.path(), mlflow_in(dir / "store"), {2, 6});
  EXPECT_EQ(run_in(dir), run);
  EXPECT_EQ(points_of(run, "loss"),
            (std::vector<std::string>{"1.1 1", "2.1 2", "3.1 3", "4.1 4", "5.2 5", "6.2 6"}));
  EXPECT_TRUE(has_line_in(run + "/meta.yaml", "status: 3"));
}

TEST(MlflowFolder, RunsShareAnExperiment) {
  TempDir dir;
  const auto store = make_mlflow_folder(dir / "store", real_files());
  store->create_run({.experiment = "it's: one", .name = "a"});
  store->create_run({.experiment = "it's: one", .name = "b"});
  store->create_run({.experiment = "Default", .name = "c"});
  EXPECT_EQ(files_below(dir / "store", "meta.yaml").size(), 5u);
  EXPECT_TRUE(std::filesystem::exists(dir / "store/0/meta.yaml"));
  // As MLflow itself writes it.
  std::filesystem::create_directories(dir / "store/77");
  write_text(dir / "store/77/meta.yaml", "experiment_id: '77'\nname: 'it''s: theirs'\n");
  const std::string id = store->create_run({.experiment = "it's: theirs", .name = "d"});
  EXPECT_TRUE(std::filesystem::exists(dir / ("store/77/" + id)));
}

TEST(MlflowFolder, WritesNumbersAsPythonReadsThemAndKeysAsFiles) {
  TempDir dir;
  const auto store = make_mlflow_folder(dir / "store", real_files());
  EXPECT_EQ(store->key_of("grad_norm/layer1"), "grad_norm.layer1");
  EXPECT_EQ(store->key_of("../x"), "__.x");
  const std::string id = store->create_run({.experiment = "x", .name = "a"});
  store->add_points(id, {{"x", NAN, 7, 1}, {"x", -INFINITY, 7, 2}, {"y", 5.8e-4, 8, 3}});
  const std::vector<std::string> files = files_below(dir / "store", "x");
  EXPECT_EQ(text_of(files.back()), "7 nan 1\n7 -inf 2\n");
  EXPECT_EQ(store->resume_run(id), (std::map<std::string, int64_t>{{"x", 2}, {"y", 3}}));
}

TEST(MlflowFolder, TablesAreArtifactsAndATagNamesTheNewest) {
  TempDir dir;
  const auto store = make_mlflow_folder(dir / "store", real_files());
  const std::string id = store->create_run({.experiment = "x", .name = "a"});
  store->add_table(id, some_table("words"), 3);
  store->add_table(id, some_table("../sums"), 3);
  const auto again = make_mlflow_folder(dir / "store", real_files());
  again->resume_run(id);
  again->add_table(id, some_table("words"), 70000);
  const std::vector<std::string> files = files_below(dir / "store", "step-");
  ASSERT_EQ(files.size(), 3u);
  EXPECT_TRUE(files[0].ends_with("/artifacts/tables/icl/__/sums/step-000000003.json")) << files[0];
  EXPECT_TRUE(files[2].ends_with("/artifacts/tables/icl/words/step-000070000.json")) << files[2];
  EXPECT_EQ(Json::parse(text_of(files[2])),
            Json::parse(R"({"columns": ["item", "right", "output"], "data": [[1, true, "größer"],
    [2, false, null]]})"));
  EXPECT_EQ(Json::parse(text_of(files_below(dir / "store", "mlflow.loggedArtifacts").at(0))),
            Json::parse(R"([{"path": "tables/icl/__/sums/step-000000003.json", "type": "table"},
    {"path": "tables/icl/words/step-000070000.json", "type": "table"}])"));
}

TEST(MlflowFolder, TheTagOfTablesIsNoLongerThanServersTake) {
  MlflowTables tables;
  tables.read("no list");
  tables.read(R"([{"path": 3}, 4])");
  for (int i = 0; i < 200; ++i) tables.add("task " + std::to_string(i), 1);
  EXPECT_LE(tables.tag().size(), 5000u);
  EXPECT_GT(Json::parse(tables.tag()).size(), 30u);
}

TEST(MlflowFolder, SaysWhatIsWrongWithTheRunsId) {
  TempDir dir;
  run_attempt(dir.path(), mlflow_in(dir / "store"), {0, 1});
  EXPECT_THROW(make_mlflow_folder(dir / "elsewhere", real_files())->resume_run("0123"), Error);
  write_text(dir / "mlflow_run_id.txt", "../x\n");
  const Told told = run_attempt(dir.path(), mlflow_in(dir / "store"), {1, 2});
  ASSERT_EQ(told.warnings.size(), 1u);
  EXPECT_NE(told.warnings[0].find("does not hold an id of MLflow"), std::string::npos) << told.warnings[0];
}

}  // namespace
}  // namespace tycho
