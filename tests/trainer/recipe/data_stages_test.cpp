// When data changes during a run.
#include "trainer/recipe/data_stages.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

TrainConfig staged(std::vector<const char*> starts) {
  TrainConfig config;
  config.seq_len = 10;
  config.global_batch = Duration::parse("4sp");
  config.max_duration = Duration::parse("100ba");
  config.train_data.value = MdsConfig{.local_dir = "first"};
  for (const char* start : starts)
    config.data_stages.push_back({.name = "s", .start = Duration::parse(start), .data = config.train_data});
  return config;
}

std::string problems_of(const TrainConfig& config) {
  ConfigProblems problems;
  check_stages(config, problems);
  std::string text;
  for (const ConfigProblem& problem : problems.take()) text += problem.path + ": " + problem.message + "\n";
  return text;
}

TEST(DataStagesTest, AStageBeginsAtTheFirstStepAfterItsStart) {
  const TrainConfig config = staged({"10ba", "1000tok", "0.5dur", "241sp"});  // steps 10, 25, 50, 60.25
  EXPECT_EQ(problems_of(config), "");
  for (const auto& [step, stage] : std::vector<std::pair<int64_t, int64_t>>{
           {0, 0}, {9, 0}, {10, 1}, {24, 1}, {25, 2}, {49, 2}, {50, 3}, {60, 3}, {61, 4}, {99, 4}})
    EXPECT_EQ(stage_at(config, step, 100), stage) << step;
  EXPECT_EQ(&stage_data(config, 0), &config.train_data);
  EXPECT_EQ(&stage_data(config, 2), &config.data_stages[1].data);
}

TEST(DataStagesTest, StagesFollowEachOtherWithinTheRun) {
  EXPECT_EQ(problems_of(staged({"20ba", "20ba"})),
            "data_stages[2].start: 20ba is not after the start of the stage before it\n");
  EXPECT_EQ(problems_of(staged({"100ba"})),
            "data_stages[1].start: 100ba is at the end of the run or later: max_duration is 100ba\n");
  TrainConfig config = staged({"20ba"});
  config.max_duration = Duration::parse("2ep");
  EXPECT_EQ(problems_of(config),
            "max_duration: 2ep counts epochs, which stages of data have of their own; write ba or tok\n");
  config = staged({"20ba"});
  config.data_stages[0].data.value = MdsConfig();
  EXPECT_EQ(
      problems_of(config),
      "data_stages[1].data.local_dir: is required: set it to the folder of the data, or write streams\n");
}

}  // namespace
}  // namespace tycho
