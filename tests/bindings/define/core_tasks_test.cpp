// recipes/tasks/core.lua against DCLM's own list of tasks and its own code
// (tests/golden/icl/make_core_goldens.py).
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "bindings/define/recipe.h"
#include "trainer/base/field_types.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/tasks/result.h"

namespace tycho {
namespace {

class CoreTasksTest : public testing::Test {
 protected:
  CoreTasksTest() { unsetenv("TYCHO_CORE_DATA"); }
  ~CoreTasksTest() override { unsetenv("TYCHO_CORE_DATA"); }
  const Json golden_ = Json::parse(read_file(TYCHO_SOURCE_DIR "/tests/golden/icl/core.json"));
  static IclConfig core() { return read_tasks_file(TYCHO_SOURCE_DIR "/recipes/tasks/core.lua", false); }

  /// Results with DCLM's accuracies; jeopardy's is the mean of two categories.
  IclResults results() const {
    IclResults results;
    for (const IclTaskConfig& task : core().tasks) {
      const double accuracy = golden_.at("accuracies").at(task.label);
      const std::string name = fmt::format("{}/{}-shot", task.label, task.num_fewshot.at(0));
      const char* metric = task.type == IclType::kLanguageModeling
                               ? "InContextLearningLMAccuracy"
                               : "InContextLearningMultipleChoiceAccuracy";
      if (!task.has_categories) {
        results.tasks.push_back({name, {{metric, accuracy}}, 100});
        continue;
      }
      results.tasks.push_back({name + "/science", {{metric, accuracy / 2}}, 300});
      results.tasks.push_back({name + "/history", {{metric, accuracy * 1.5}}, 100});
    }
    return results;
  }
};

TEST_F(CoreTasksTest, HasTheTasksOfDclm) {
  std::map<std::string, Json> wanted;
  for (const Json& task : golden_.at("tasks")) wanted[task.at("label")] = task;
  const IclConfig config = core();
  ASSERT_EQ(config.tasks.size(), 22u);
  for (const IclTaskConfig& task : config.tasks) {
    ASSERT_TRUE(wanted.contains(task.label)) << task.label;
    const Json& one = wanted.at(task.label);
    EXPECT_EQ(task.path, "eval/" + one.at("dataset_uri").get<std::string>());
    EXPECT_EQ(enum_name(task.type), one.at("icl_task_type").get<std::string>()) << task.label;
    EXPECT_EQ(task.num_fewshot, one.at("num_fewshot").get<std::vector<int64_t>>()) << task.label;
    EXPECT_EQ(task.continuation_delimiter, one.value("continuation_delimiter", " ")) << task.label;
    EXPECT_EQ(task.has_categories, one.value("has_categories", false)) << task.label;
    EXPECT_EQ(task.example_delimiter, "\n");
    EXPECT_EQ(task.question_prelude + task.prompt_string, "");
    wanted.erase(task.label);
  }
  EXPECT_TRUE(wanted.empty());
  std::map<std::string, double> baselines;
  for (const GauntletBenchmark& benchmark : config.gauntlet.categories.at("core"))
    baselines[benchmark.name] = benchmark.random_baseline;
  EXPECT_EQ(baselines.size(), 22u);
  for (const Json& task : golden_.at("tasks"))
    EXPECT_DOUBLE_EQ(baselines.at(task.at("label")), task.at("random_baseline_percent").get<double>() / 100);
}

TEST_F(CoreTasksTest, CentresAndAveragesAsDclmDoes) {
  IclResults measured = results();
  add_gauntlet(core().gauntlet, measured);
  EXPECT_TRUE(measured.left_out.empty());
  EXPECT_NEAR(measured.gauntlet.at("core"), golden_.at("core"), 1e-12);
  for (const auto& [label, score] : golden_.at("centred").items())
    EXPECT_NEAR(measured.gauntlet.at(label), score, 1e-12) << label;
  EXPECT_NEAR(measured.gauntlet.at("commonsense_reasoning"),
              (golden_.at("centred").at("copa").get<double>() +
               golden_.at("centred").at("commonsense_qa").get<double>() +
               golden_.at("centred").at("piqa").get<double>() +
               golden_.at("centred").at("openbook_qa").get<double>()) /
                  4,
              1e-12);
}

// DCLM: "N/A due to missing tasks".
TEST_F(CoreTasksTest, HasNoCoreWithoutOneOfTheTasks) {
  IclResults measured = results();
  std::erase_if(measured.tasks, [](const IclTaskResult& task) { return task.name.starts_with("coqa/"); });
  add_gauntlet(core().gauntlet, measured);
  EXPECT_FALSE(measured.gauntlet.contains("core"));
  EXPECT_EQ(measured.left_out, (std::vector<std::string>{"coqa", "core"}));
}

TEST_F(CoreTasksTest, ReadsTheDataWhereTheEnvironmentSaysItIs) {
  setenv("TYCHO_CORE_DATA", "/data/core", 1);
  EXPECT_EQ(core().tasks.at(0).path, "/data/core/world_knowledge/jeopardy_all.jsonl");
}

}  // namespace
}  // namespace tycho
