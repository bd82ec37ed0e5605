// Configurations and texts of runs: what differs, the newest first, whatever characters are in them.
#include "trainer/report/run_sections.h"

#include "tests/trainer/report/report_fixture.h"
#include "trainer/report/run_page.h"

namespace tycho {
namespace {

RunSummary run_with(const std::string& name, const char* recipe) {
  RunSummary run;
  run.name = name;
  run.recipe = Json::parse(recipe);
  return run;
}

TEST(RunSections, ShowsTheKeysThatDiffer) {
  const std::string text = configuration_section(
      {run_with("a", R"({"run_name": "a", "seed": 1, "optimizer": {"kind": "adamw", "lr": 0.001}})"),
       run_with(
           "b",
           R"({"run_name": "b", "seed": 1, "optimizer": {"kind": "adamw", "lr": 0.002, "beta": [1, 2]}})")});
  EXPECT_NE(text.find("<tr><td>optimizer.lr</td><td>0.001</td><td>0.002</td></tr>"), std::string::npos)
      << text;
  EXPECT_NE(text.find("<td>optimizer.beta</td><td>(no such key)</td><td>[1,2]</td>"), std::string::npos)
      << text;
  EXPECT_NE(text.find("2 keys are equal"), std::string::npos) << text;
  EXPECT_EQ(text.find("run_name"), std::string::npos);
  EXPECT_EQ(configuration_section({RunSummary(), RunSummary()}), "");
  EXPECT_NE(configuration_section({run_with("a", R"({"seed": 1})")}).find("<summary>1 keys"),
            std::string::npos);
}

TEST(RunSections, TextsOfStepsThatWereLostAreLeftOut) {
  RunFolders runs;
  const auto text_at = [&](int64_t attempt, int64_t step, const std::string& text) {
    runs.add("a", "events.jsonl",
             {{"time", 1000},
              {"attempt", attempt},
              {"step", step},
              {"kind", "text"},
              {"text", "p: x"},
              {"facts", {{"name", "p"}, {"text", text}}}});
  };
  runs.add_start("a", 1000, 1, 1);
  text_at(1, 2, "kept"), text_at(1, 4, "lost"), text_at(1, 6, "lost");
  runs.add("a", "events.jsonl",
           {{"time", 1010},
            {"attempt", 2},
            {"step", 3},
            {"kind", "run_start"},
            {"facts", {{"run_name", "a"}, {"num_ranks", 1}, {"first_step", 3}}}});
  text_at(2, 4, "again"), text_at(2, 4, "last word");
  const RunSummary run = summarize_run(runs / "a");
  ASSERT_EQ(run.texts.size(), 2u);
  EXPECT_EQ(run.texts[0].text, "kept");
  EXPECT_EQ(run.texts[1].text, "last word");
}

TEST(RunSections, ShowsTheNewestTextAndFoldsOlderOnes) {
  RunSummary run;
  run.name = "a";
  for (int64_t step = 1; step <= 100; ++step)
    run.texts.push_back({step, "<p>", "text " + std::to_string(step) + " </td><script>"});
  const std::string text = texts_section({run});
  EXPECT_LT(text.find("text 100 "), text.find("<details>"));
  EXPECT_GT(text.find("text 1 "), text.find("<details>"));
  EXPECT_NE(text.find("19 of 99 earlier steps"), std::string::npos);
  EXPECT_EQ(text.find("<script>"), std::string::npos);
  EXPECT_NE(text.find("<h3>&lt;p&gt;</h3>"), std::string::npos);
  EXPECT_EQ(texts_section({RunSummary()}), "");
}

TEST(RunSections, AWatchedPageCarriesItsStamp) {
  RunSummary run;
  run.curves["loss"] = {{1, 2}, {2, 1}};
  RunPageOptions options;
  options.watched = true, options.stamp = "123";
  const std::string page = run_page({run}, {}, options);
  EXPECT_NE(page.find("postMessage({tycho: \"123\"}"), std::string::npos);
  EXPECT_NE(page.find("{\"watched\":true,\"stamp\":\"123\""), std::string::npos);
  EXPECT_NE(run_page({run}).find("{\"watched\":false"), std::string::npos);
}

}  // namespace
}  // namespace tycho
