// Lists of runs: states as their folders have them, and what is no run.
#include "trainer/report/run_list.h"

#include "tests/trainer/report/report_fixture.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

TEST(RunList, HasEveryRunTheNewestFirst) {
  RunFolders runs;
  runs.add_run("done", 1, 1, 100);
  runs.add_start("group/killed", 3000, 1, 2);
  runs.add_step("group/killed", 3001, 1, 1, 2.5, 100);
  std::filesystem::create_directories(runs / "texts");
  const std::vector<RunLine> list = list_runs(runs / "");
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].name, "group/killed");
  EXPECT_EQ(list[0].state, "killed");
  EXPECT_EQ(list[0].step, 1);
  EXPECT_EQ(list[0].total_steps, 8);
  EXPECT_DOUBLE_EQ(list[0].loss.value(), 2.5);
  EXPECT_DOUBLE_EQ(list[0].newest_s, 3001);
  EXPECT_EQ(list[1].name, "done");
  EXPECT_EQ(list[1].state, "done");
  EXPECT_EQ(list[1].step, 8);
  EXPECT_EQ(list_runs(runs / "done").size(), 1u) << "a folder that is a run itself";
}

TEST(RunList, ReadsOnlyTheEndsOfLongRecords) {
  RunFolders runs;
  runs.add_start("long", 1000, 1, 1);
  const std::string filler(4000, 'x');
  for (int64_t step = 1; step <= 600; ++step)
    runs.add("long", "events.jsonl",
             {{"time", 1000 + step}, {"attempt", 1}, {"step", step}, {"kind", "log"}, {"text", filler}});
  const std::vector<RunLine> list = list_runs(runs / "long");
  EXPECT_EQ(list[0].total_steps, 8) << "from the beginning";
  EXPECT_EQ(list[0].step, 600) << "from the end";
}

TEST(RunList, ShowsForeignTextOnOneLine) {
  RunFolders runs;
  runs.add_start("a\x1b[31m", 1000, 1, 1);
  const auto rows = run_list_table(list_runs(runs / ""));
  EXPECT_EQ(rows.at(1).at(0).find('\x1b'), std::string::npos);
  EXPECT_EQ(rows.at(1).at(1), "killed");
  EXPECT_EQ(rows.at(1).at(3), "-");
}

TEST(RunList, AMissingFolderIsNamed) {
  RunFolders runs;
  try {
    list_runs(runs / "nowhere");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUnusable);
    EXPECT_NE(std::string(error.what()).find("[ls] expected a folder of runs, got "), std::string::npos);
  }
}

}  // namespace
}  // namespace tycho
