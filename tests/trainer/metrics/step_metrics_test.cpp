// Every number of a step has its name, its help and its row in the docs.
#include "trainer/metrics/step_metrics.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

namespace tycho {
namespace {

std::string docs_page() {
  std::ifstream file(std::string(std::getenv("TYCHO_SOURCE_DIR")) + "/docs/logging.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(StepMetrics, AreListedInTheDocsInWordsOfTheTable) {
  const std::string page = docs_page();
  ASSERT_FALSE(page.empty());
  for_each_metric({}, [&](const auto& field, const auto&) {
    const std::string row = fmt::format("| `{}` | {} |\n", field.name, field.help);
    EXPECT_NE(page.find(row), std::string::npos) << "docs/logging.md lacks this row:\n" << row;
  });
}

TEST(StepMetrics, EveryMemberIsInTheTable) {
  // A member that the table forgets would shift the end of the struct.
  size_t bytes = 0;
  std::set<std::string> names;
  for_each_metric({}, [&](const auto& field, const auto& value) {
    bytes += sizeof(value);
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
  });
  EXPECT_EQ(bytes, sizeof(StepMetrics));
}

}  // namespace
}  // namespace tycho
