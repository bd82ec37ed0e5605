// tycho help TOPIC, as a person types it.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "tests/host/shell.h"

namespace tycho {
namespace {

using HelpTopicTest = ShellTest;

TEST_F(HelpTopicTest, HelpShowsPagesByTopic) {
  const Outcome page = shell("tycho help numerics");
  EXPECT_EQ(page.code, 0);
  EXPECT_TRUE(page.output.starts_with("Numerics\n========\n")) << page.output.substr(0, 200);
  EXPECT_EQ(shell("tycho help sharding").output, shell("tycho help parallel/sharding").output);
  EXPECT_EQ(shell("tycho help parallel sharding").output,
            shell("tycho help docs/parallel/sharding.md").output);
  for (const char* topic : {" numerics,", " data,", " parallel/sharding,"})
    EXPECT_CONTAINS(shell("tycho --help").output, topic);
}

TEST_F(HelpTopicTest, EveryPageIsATopicAndFitsTheTerminal) {
  std::istringstream names(shell("cd " TYCHO_SOURCE_DIR "/docs; find * -name '*.md'").output);
  for (std::string name; names >> name;) {
    if (name == "README.md") continue;
    const Outcome page =
        shell("COLUMNS=100; export COLUMNS; tycho help " + name.substr(0, name.size() - 3) + " </dev/null");
    EXPECT_EQ(page.code, 0) << name;
    EXPECT_EQ(page.output.find("```"), std::string::npos) << name;
    EXPECT_EQ(page.output.find("]("), std::string::npos) << name;
    EXPECT_EQ(page.output.find("<!--"), std::string::npos) << name;
    std::istringstream lines(page.output.substr(page.output.find("\n===")));  // a verb's usage is before it
    for (std::string line; std::getline(lines, line);) {
      const auto columns = std::count_if(line.begin(), line.end(), [](char c) { return (c & 0xc0) != 0x80; });
      const bool is_code = line.starts_with("    ");
      EXPECT_TRUE(is_code || columns <= 100) << name << ": " << line;
    }
  }
}

TEST_F(HelpTopicTest, APageWithTheNameOfAVerbFollowsItsUsage) {
  const std::string both = shell("tycho help report").output, usage = shell("tycho report --help").output;
  ASSERT_TRUE(both.starts_with(usage)) << both.substr(0, 400);
  EXPECT_CONTAINS(both.substr(usage.size()), "\n===");
}

TEST_F(HelpTopicTest, AMisspeltTopicGetsASuggestion) {
  const Outcome outcome = shell("tycho help numercs");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_EQ(outcome.output,
            "[tycho help] expected a verb or a topic, got \"numercs\"; `tycho help` lists them; did you mean "
            "\"numerics\"?\n");
}

TEST_F(HelpTopicTest, PagesGoThroughThePagerOfATerminalOnly) {
  const std::string in_terminal =
      "script -qec 'PAGER=\"sed s/^/pager:/\" " TYCHO_PROGRAM " help numerics' /dev/null";
  EXPECT_CONTAINS(shell(in_terminal + " </dev/null").output, "pager:Numerics");
  EXPECT_EQ(shell("PAGER='sed s/^/pager:/'; export PAGER; tycho help numerics").output.find("pager:"),
            std::string::npos);
  EXPECT_CONTAINS(
      shell("script -qec 'PAGER=no-such-pager " TYCHO_PROGRAM " help numerics' /dev/null </dev/null").output,
      "Numerics\r\n====");
}

}  // namespace
}  // namespace tycho
