// The page about runs: whole in every state of them, and safe for whatever text is in them.
#include "trainer/report/run_page.h"

#include <cmath>
#include <set>

#include "tests/trainer/report/report_fixture.h"

namespace tycho {
namespace {

/// Returns the page without its scripts and styles, the data included.
std::string text_of(std::string page) {
  for (const char* tag : {"style", "script"})
    for (size_t at = page.find(std::string("<") + tag + ">"); at != std::string::npos;
         at = page.find(std::string("<") + tag + ">", at))
      page.erase(at, page.find(std::string("</") + tag + ">", at) - at);
  return page;
}

/// Returns the data that the scripts draw.
Json data_of(const std::string& page) {
  const std::string head = "id=\"page-data\">";
  const size_t at = page.find(head) + head.size();
  return Json::parse(page.substr(at, page.find("</script>", at) - at));
}

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
  EXPECT_EQ(count_in(text_of(page), "<svg"), 3) << "the loss without scripts, scaling, waiting";
  const Json data = data_of(page);
  EXPECT_EQ(data["runs"].size(), 2u);
  EXPECT_EQ(data["runs"][1]["clock"]["tokens"].back(), 800);
  EXPECT_EQ(data["runs"][1]["clock"]["seconds"].back(), 8);
  std::set<std::string> metrics;
  for (const Json& curve : data["curves"]) metrics.insert(curve["metric"].get<std::string>());
  EXPECT_EQ(metrics, (std::set<std::string>{"eval.loss", "loss", "tokens_per_s"}));
  EXPECT_NE(page.find("<h1>Runs one, two</h1>"), std::string::npos);
  EXPECT_NE(page.find("<td>2.00x</td>"), std::string::npos);
  EXPECT_NE(page.find("<td>90.0 %</td>"), std::string::npos);
  EXPECT_NE(page.find("2 ranks: 180 tokens/s"), std::string::npos);
  EXPECT_TRUE(page.ends_with("</html>\n"));
  EXPECT_EQ(count_in(text_of(page), "nan"), 0);
}

TEST(RunPage, HasALegendAndEveryMetricThatWasRead) {
  RunSummary a, b;
  a.name = "first", b.name = "second";
  a.curves = {{"loss", {{1, 2}, {2, 1}}},
              {"lr", {{1, 2}, {0.1, 0.2}}},
              {"grad_norm", {{1, 2}, {1, 1}}},
              {"grad/head", {{1, 2}, {3, 4}}}};
  b.curves = {{"loss", {{1, 2}, {2, 1.5}}}};
  RunPageOptions options;
  options.chosen = {"grad/*"};
  const std::string page = text_of(run_page({a, b}, {}, options));
  EXPECT_EQ(count_in(page, "<p class=\"legend\">"), 1);
  for (const char* text : {"</i>first</span>", "</i>second</span>", "\"Learning rate\"",
                           "\"Norm of the gradient, before clipping\""})
    EXPECT_EQ(count_in(page, text), 1) << text;
  EXPECT_EQ(data_of(page)["plots"][0]["metrics"], Json::array({"grad/head"}))
      << "what was asked for is first";
  EXPECT_EQ(count_in(text_of(run_page({a})), "<p class=\"legend\">"), 0) << "one run needs none";
}

TEST(RunPage, AParentLeadsToItsFork) {
  RunSummary parent, fork;
  parent.curves["loss"] = {{1, 2}, {4, 3}};
  fork.name = "fork", fork.folder = "runs/fork", fork.parent = "runs/parent", fork.first_step = 2;
  fork.curves["loss"] = {{3, 4}, {2.5, 2.4}};
  EXPECT_EQ(data_of(run_page({fork}))["runs"].size(), 1u);
  RunPageOptions options;
  options.parents["runs/fork"] = parent;
  const Json data = data_of(run_page({fork}, {}, options));
  ASSERT_EQ(data["runs"].size(), 2u);
  EXPECT_EQ(data["runs"][1]["parent_of"], 0);
  EXPECT_EQ(data["curves"][1]["run"], 1);
  EXPECT_EQ(data["curves"][1]["y"], Json::array({4, 3}));
}

TEST(RunPage, BeginsWithTheSmoothingThatWasAskedFor) {
  RunSummary run;
  run.curves["loss"] = {{1, 2}, {2, 3}};
  RunPageOptions options;
  options.smoothing = 0.9;
  EXPECT_EQ(data_of(run_page({run}, {}, options))["smoothing"], 0.9);
  EXPECT_EQ(data_of(run_page({run}))["smoothing"], 0);
}

TEST(RunPage, OfARunWithoutStepsIsAPage) {
  RunFolders runs;
  runs.add_start("new", 1000, 1, 1);
  const std::string page = run_page({summarize_run(runs / "new")});
  EXPECT_NE(page.find("not yet"), std::string::npos);
  EXPECT_EQ(count_in(text_of(page), "nan"), 0);
}

TEST(RunPage, LossesThatAreNotFiniteBreakTheLineAndAreListed) {
  RunSummary run;
  run.name = "diverged";
  run.curves["loss"] = {{1, 2, 3}, {2.0, INFINITY, NAN}};
  const std::string page = run_page({run});
  const Json curve = data_of(page)["curves"][0];
  EXPECT_EQ(curve["y"], Json::array({2, nullptr, nullptr}));
  EXPECT_EQ(curve["not_finite"], Json::parse(R"([[2,"inf"],[3,"nan"]])"));
  EXPECT_EQ(count_in(text_of(page.substr(page.find("id=\"still\""), page.find("page-data"))), "nan"), 1)
      << "the data's own";
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
  EXPECT_EQ(count_in(text_of(page), "nan"), 0);
  EXPECT_LT(page.size(), 200'000u);
  EXPECT_EQ(data_of(page)["curves"].size(), 3u);
}

TEST(RunPage, TextsAreEscaped) {
  const std::string bad = "</script><script>alert(1)</script><img src=x>\"'&<!--";
  RunSummary run;
  run.name = bad, run.folder = "runs/" + bad;
  run.end = "failed: <img src=x>";
  run.curves["loss"] = {{1, 2}, {2, 1}};
  run.curves[bad] = {{1, 2}, {2, 1}};
  const std::string page = run_page({run});
  EXPECT_EQ(count_in(page, "<script"), 4) << "stamp, data, uPlot, Tycho's";
  EXPECT_EQ(count_in(page, "<img"), 0);
  const Json data = data_of(page);
  EXPECT_EQ(data["runs"][0]["name"], bad);
  EXPECT_EQ(data["curves"][0]["metric"], bad);
}

TEST(RunPage, NeedsNoOtherFileAndNamesTheLicenceOfItsLibrary) {
  RunSummary run;
  run.curves["loss"] = {{1, 2}, {2, 1}};
  const std::string page = run_page({run});
  for (const char* outside : {" src=", "@import", "url(", "<link", "fetch(", "XMLHttpRequest", "WebSocket"})
    EXPECT_EQ(count_in(page, outside), 0) << outside;
  EXPECT_EQ(count_in(page, "uPlot 1.6.32"), 1);
  EXPECT_EQ(count_in(page, "(v1.6.32)"), 1) << "the library's own line";
  EXPECT_EQ(count_in(page, "Copyright (c) 2022 Leon Sorokin"), 1);
}

}  // namespace
}  // namespace tycho
