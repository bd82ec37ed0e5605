// Tests of the run's name in paths.
#include "trainer/recipe/run_name.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

TEST(RunName, StandsForItsMarkEverywhere) {
  EXPECT_EQ(with_run_name("runs/{run_name}/{run_name}.csv", "a"), "runs/a/a.csv");
  EXPECT_EQ(with_run_name("runs", "a"), "runs");
  EXPECT_EQ(with_run_name("{run_name}", "x{run_name}y"), "x{run_name}y");
}

TEST(RunName, IsAllThatCanStandInBraces) {
  EXPECT_FALSE(has_other_braces("runs/{run_name}"));
  EXPECT_TRUE(has_other_braces("runs/{name}"));
  EXPECT_TRUE(has_other_braces("{run_name}}"));
}

}  // namespace
}  // namespace tycho
