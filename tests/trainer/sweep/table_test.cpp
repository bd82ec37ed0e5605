// Tables: columns, order, forms.
#include "trainer/sweep/table.h"

#include "tests/trainer/sweep/sweep_fixture.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

using TableTest = SweepBoardTest;

TEST_F(TableTest, BestFirstByDefaultAndByAnyColumn) {
  SweepFolder f = folder(define(12));
  do_trial(f, "a2", TrialState::kFinished, 3.0);
  do_trial(f, "a10", TrialState::kFinished, 2.0);
  auto rows = sweep_table(f.board(), {});
  EXPECT_EQ(rows[0][0], "trial");
  EXPECT_EQ(rows[1][0], "10");
  EXPECT_EQ(rows[2][0], "2");
  rows = sweep_table(f.board(), {.sort = "optimizer.lr", .columns = {"optimizer.lr", "state"}});
  EXPECT_EQ(rows[0], (std::vector<std::string>{"trial", "optimizer.lr", "state"}));
  EXPECT_EQ(rows[2][1], "2") << "numbers by size";
  EXPECT_EQ(rows[12][1], "12");
  EXPECT_EQ(sweep_summary(f.board()), "2 of 12 done, 10 to do, best 2 (trial 10)");
}

TEST_F(TableTest, AnUnknownColumnIsNamedWithTheOneThatWasMeant) {
  SweepFolder f = folder(define(1));
  try {
    sweep_table(f.board(), {.columns = {"stat"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean \"state\""), std::string::npos) << error.what();
  }
}

TEST_F(TableTest, FormsQuoteWhatTheyMust) {
  const std::vector<std::vector<std::string>> rows = {{"a", "b"}, {"x,y", "say \"hi\""}, {"p|q", ""}};
  EXPECT_EQ(csv_text(rows), "a,b\n\"x,y\",\"say \"\"hi\"\"\"\np|q,\n");
  EXPECT_EQ(markdown_table(rows), "| a | b |\n|---|---|\n| x,y | say \"hi\" |\n| p\\|q |  |\n");
}

}  // namespace
}  // namespace tycho
