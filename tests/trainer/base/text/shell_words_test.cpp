// Words that a shell reads back, checked against a shell.
#include "trainer/base/text/shell_words.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "trainer/base/error.h"

namespace tycho {
namespace {

std::string printed_by_shell(const std::string& line) {
  FILE* pipe = popen(("printf '%s\\n' " + line).c_str(), "r");
  std::string text;
  for (int c; (c = fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  pclose(pipe);
  return text;
}

TEST(ShellWords, AreReadBackByAShellAndByUs) {
  const std::vector<std::string> words = {"tycho",   "run",     "a b.lua", "run_name=it's", "",
                                          "x=[1,2]", "~c.norm", "lr*=0.5", "a\\b\"c$HOME"};
  const std::string line = shell_line(words);
  std::string expected;
  for (const std::string& word : words) expected += word + "\n";
  EXPECT_EQ(printed_by_shell(line), expected);
  EXPECT_EQ(split_shell_line(line + "\n"), words);
}

TEST(ShellWords, LeaveSimpleWordsAlone) { EXPECT_EQ(shell_line({"a/b.lua", "lr=1e-3"}), "a/b.lua lr=1e-3"); }

TEST(ShellWords, ReadOtherSpellings) {
  EXPECT_EQ(split_shell_line(" a\\ b  \"c 'd\" e'f'g "), (std::vector<std::string>{"a b", "c 'd", "efg"}));
  EXPECT_TRUE(split_shell_line(" \n").empty());
}

TEST(ShellWords, RefuseAnOpenQuote) { EXPECT_THROW(split_shell_line("a 'b"), Error); }

}  // namespace
}  // namespace tycho
