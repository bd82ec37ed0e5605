// The page about runs: whole in every state of them, and safe for whatever text is in them.
#include "trainer/report/run_page.h"

#include <cmath>

#include "tests/trainer/report/report_fixture.h"

namespace tycho {
namespace {

int count_in(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(RunPage, DrawsEveryRun) {
  RunFolders runs;
  runs.add_run("one", 1, 2, 100);
  runs.add_run("two", 2, 1, 180);
  runs.add("two", "metrics.jsonl", {{"time", 1008}, {"attempt", 1}, {"step", 8}, {"eval.loss", 2.5}});
  const std::string page = run_page({summarize_run(runs / "one"), summarize_run(runs / "two")});
  EXPECT_EQ(count_in(page, "<svg"), 5);  // loss, evaluations, speed, scaling, waiting
  EXPECT_NE(page.find("<h1>Runs one, two</h1>"), std::string::npos);
  EXPECT_NE(page.find("<td>2.00x</td>"), std::string::npos);
  EXPECT_NE(page.find("<td>90.0 %</td>"), std::string::npos);
  EXPECT_NE(page.find("2 ranks: 180 tokens/s"), std::string::npos);
  EXPECT_TRUE(page.ends_with("</html>\n"));
  EXPECT_EQ(count_in(page, "nan"), 0);
}

TEST(RunPage, HasALegendAndEveryMetricThatWasRead) {
  RunSummary a, b;
  a.name = "first", b.name = "second";
  a.curves = {{"loss", {{1, 2}, {2, 1}}},
              {"lr", {{1, 2}, {0.1, 0.2}}},
              {"grad_norm", {{1, 2}, {1, 1}}},
              {"grad/head", {{1, 2}, {3, 4}}}};
  b.curves = {{"loss", {{1, 2}, {2, 1.5}}}};
  const std::string page = run_page({a, b});
  EXPECT_EQ(count_in(page, "<p class=\"legend\">"), 1);
  for (const char* text : {"</i>first</span>", "</i>second</span>", ">Learning rate<",
                           ">Norm of the gradient, before clipping<"})
    EXPECT_EQ(count_in(page, text), 1) << text;
  EXPECT_EQ(count_in(run_page({a}), "<p class=\"legend\">"), 0) << "one run needs none";
}

TEST(RunPage, AParentLeadsToItsFork) {
  RunSummary parent, fork;
  parent.curves["loss"] = {{1, 2, 3, 4}, {4, 3, 2, 1}};
  fork.name = "fork", fork.parent = "runs/parent", fork.first_step = 2;
  fork.curves["loss"] = {{3, 4}, {2.5, 2.4}};
  EXPECT_EQ(count_in(run_page({fork}), "parent of fork"), 0);
  RunPageOptions options;
  options.parents["runs/parent"] = parent;
  EXPECT_EQ(count_in(run_page({fork}, {}, options), "parent of fork"), 1);
}

TEST(RunPage, SmoothingKeepsTheCurveBehind) {
  RunSummary run;
  run.name = "noisy";
  for (int i = 1; i <= 100; ++i) {
    run.curves["loss"].x.push_back(i);
    run.curves["loss"].y.push_back(2 + (i % 2));
  }
  RunPageOptions options;
  options.smoothing = 0.9;
  EXPECT_EQ(count_in(run_page({run}, {}, options), "<polyline"), count_in(run_page({run}), "<polyline") + 1);
}

TEST(RunPage, OfARunWithoutStepsIsAPage) {
  RunFolders runs;
  runs.add_start("new", 1000, 1, 1);
  const std::string page = run_page({summarize_run(runs / "new")});
  EXPECT_NE(page.find("not yet"), std::string::npos);
  EXPECT_EQ(count_in(page, "nan"), 0);
}

TEST(RunPage, LossesThatAreNotFiniteAreLeftOut) {
  RunSummary run;
  run.name = "diverged";
  run.curves["loss"] = {{1, 2, 3}, {2.0, INFINITY, NAN}};
  const std::string page = run_page({run});
  EXPECT_EQ(count_in(page, "nan"), 0);
  EXPECT_EQ(count_in(page, "inf"), 0);
}

TEST(RunPage, OfTheLargestNumbersIsAPage) {
  RunFolders runs;
  runs.add_start("big", 1000, 1, 1);
  for (const double loss : {1e308, -1e308, 1.7e308, 2.0})
    runs.add("big", "metrics.jsonl",
             {{"time", 1e308},
              {"attempt", 1},
              {"step", 1e308},
              {"tokens", 1e308},
              {"loss", loss},
              {"eval.loss", -loss},
              {"tokens_per_s", 1.7e308},
              {"step_s", 1e308},
              {"data_wait_s", 1e308}});
  const std::string page = run_page({summarize_run(runs / "big")});
  EXPECT_EQ(count_in(page, "nan"), 0);
  EXPECT_LT(page.size(), 200'000u);
}

TEST(RunPage, TextsAreEscaped) {
  RunSummary run;
  run.name = "<script>alert(1)</script>";
  run.end = "failed: <img src=x>";
  run.curves["loss"] = {{1, 2}, {2, 1}};
  const std::string page = run_page({run});
  EXPECT_EQ(page.find("<script>"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
}

}  // namespace
}  // namespace tycho
