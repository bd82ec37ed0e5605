// Patterns of paths; that they choose what `datasets` chooses is in data_files_test.
#include "trainer/data/splits/path_pattern.h"

#include <gtest/gtest.h>

#include "tests/trainer/data/data_testing.h"

namespace tycho {
namespace {

bool fits(const std::string& pattern, const std::string& path) { return PathPattern(pattern).matches(path); }

TEST(PathPattern, AStarStaysWithinAName) {
  EXPECT_TRUE(fits("en/*.json.gz", "en/c4-train.0.json.gz"));
  EXPECT_FALSE(fits("en/*.json.gz", "en/a/c4-train.0.json.gz"));
  EXPECT_FALSE(fits("*.csv", "a/b.csv"));
}

TEST(PathPattern, TwoStarsCrossFolders) {
  for (const char* path : {"a.csv", "b/a.csv", "c/b/a.csv"}) EXPECT_TRUE(fits("**/a.csv", path)) << path;
  EXPECT_TRUE(fits("data/**", "data/a/b.csv"));
  EXPECT_FALSE(fits("data/**", "other/b.csv"));
  EXPECT_TRUE(fits("**", "a/b/c"));
}

TEST(PathPattern, ReadsSetsAndSingleCharacters) {
  EXPECT_TRUE(fits("a[0-9].csv", "a7.csv"));
  EXPECT_FALSE(fits("a[!0-9].csv", "a7.csv"));
  EXPECT_TRUE(fits("a[]x].csv", "a].csv"));
  EXPECT_TRUE(fits("a[.csv", "a[.csv"));
  EXPECT_TRUE(fits("?.csv", "é.csv"));
  EXPECT_FALSE(fits("?.csv", ".csv"));
}

TEST(PathPattern, HiddenAndDescribingFilesMustBeNamed) {
  EXPECT_FALSE(fits("**", ".git/config"));
  EXPECT_FALSE(fits("**", "README.md"));
  EXPECT_FALSE(fits("**", "__pycache__/a.txt"));
  EXPECT_TRUE(fits("README.md", "README.md"));
  EXPECT_TRUE(fits(".git/*", ".git/a.txt"));
  EXPECT_TRUE(fits("__x/*", "__x/a.txt"));
}

TEST(PathPattern, TwoStarsAsAPartOfANameAreAnError) {
  testing::expect_error(ExitCode::kUnusable, {"**.csv", "between slashes"}, [] { PathPattern("**.csv"); });
}

}  // namespace
}  // namespace tycho
