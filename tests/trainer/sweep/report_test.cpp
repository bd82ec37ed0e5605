// The report: complete for whatever state a sweep is in, safe for whatever text is in it.
#include "trainer/sweep/report.h"

#include "tests/trainer/sweep/sweep_fixture.h"
#include "trainer/sweep/svg.h"

namespace tycho {
namespace {

using ReportTest = SweepBoardTest;

TEST_F(ReportTest, OfASweepThatHasNotBegunIsAPage) {
  SweepFolder f = folder(define(2));
  const ReportPages pages = sweep_report(f);
  EXPECT_NE(pages.html.find("0 of 2"), std::string::npos);
  EXPECT_NE(pages.html.find("</html>"), std::string::npos);
}

TEST_F(ReportTest, TextsCannotLeaveTheirPlace) {
  SweepDefinition definition = define(2);
  definition.name = "<script>";
  definition.trials[0].values["optimizer.lr"] = "\"><b>";
  SweepFolder f = folder(definition);
  do_trial(f, "a1", TrialState::kFinished, 1.0);
  claim(f, "a2");
  end(f, "a2", TrialState::kFailed, {}, 0, "<img src=x>");
  const ReportPages pages = sweep_report(f);
  EXPECT_EQ(pages.html.find("<script>"), std::string::npos);
  EXPECT_EQ(pages.html.find("<img"), std::string::npos);
  EXPECT_NE(pages.html.find("&lt;img src=x&gt;"), std::string::npos);
}

TEST_F(ReportTest, ScalesAreChosenByTheirValues) {
  const Scale lr = Scale::of({"1e-4", "1e-3", "2e-3", "1e-2", "5e-3"});
  EXPECT_FALSE(lr.is_words());
  EXPECT_NEAR(lr.at("1e-3"), 0.5, 1e-9) << "by its logarithm";
  EXPECT_NEAR(Scale::of({"1", "2", "3", "4", "5"}).at("3"), 0.5, 1e-9);
  const Scale words = Scale::of({"50ba", "100ba", "50ba"});
  EXPECT_TRUE(words.is_words());
  EXPECT_EQ(words.at("nothing"), -1);
  EXPECT_EQ(Scale::linear(2, 2).at(2.0), 0.5);
}

}  // namespace
}  // namespace tycho
