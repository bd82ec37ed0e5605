// What the tab key offers, through bash itself.
#include "tests/host/shell.h"

namespace tycho {
namespace {

class CompletionTest : public ShellTest {
 protected:
  /// What bash would offer after a line, one a line.
  std::string offered(const std::string& line) const {
    return here("tycho completion bash > tycho.bash; ln -sf " TYCHO_PROGRAM
                " tycho; PATH=.:$PATH; source ./tycho.bash; "
                "COMP_LINE='" +
                    line + "'; COMP_POINT=${#COMP_LINE}; _tycho; printf '%s\\n' \"${COMPREPLY[@]}\"",
                "bash")
        .output;
  }
};

TEST_F(CompletionTest, OffersVerbsAndSubverbs) {
  EXPECT_EQ(offered("tycho che"), "check\n");
  EXPECT_CONTAINS(offered("tycho "), "\nrun\n");
  EXPECT_EQ(offered("tycho data conv"), "convert\n");
  EXPECT_EQ(offered("tycho completion z"), "zsh\n");
  EXPECT_EQ(offered("tycho help nume"), "numerics\n");
}

TEST_F(CompletionTest, OffersOptions) {
  EXPECT_EQ(offered("tycho config x.lua --ch"), "--changed\n");
  EXPECT_CONTAINS(offered("tycho check x.lua --"), "--unset\n");
}

TEST_F(CompletionTest, OffersWhatTheLaunchedVerbDoes) {
  write("", "mine.lua");
  EXPECT_EQ(offered("tycho launch --gr"), "--grace\n");
  EXPECT_EQ(offered("tycho launch -n 2 "), "run\nrerun\n");
  EXPECT_EQ(offered("tycho launch -n "), "\n") << "a number";
  EXPECT_EQ(offered("tycho launch -n 2 run m"), "mine.lua\n");
  EXPECT_EQ(offered("tycho launch --grace=5 -n2 run mine.lua seq_l"), "seq_len=\n");
  EXPECT_EQ(offered("tycho launch -n 2 run mine.lua --pl"), "--plain\n");
}

TEST_F(CompletionTest, OffersRecipesAndFolders) {
  write("", "mine.lua");
  write("", "mine.txt");
  std::filesystem::create_directory(folder_ / "more");
  EXPECT_EQ(offered("tycho run m"), "mine.lua\nmore/\n");
  EXPECT_EQ(offered("tycho run mine.lua @mi"), "mine.lua\nmine.txt\n");
}

TEST_F(CompletionTest, OffersKeysOfTheKindThatTheRecipeOrAnArgumentChooses) {
  write(R"(local t = require "tycho"
local r = t.recipe "x"
r.optimizer = t.optim.lion { lr = 1e-4 }
r.callbacks.plateau = t.component { name = "plateau", fields = { patience = 3 }, batch_end = function() end } {}
return r
)",
        "mine.lua");
  EXPECT_EQ(offered("tycho run mine.lua callbacks.plateau.p"), "callbacks.plateau.patience=\n");
  EXPECT_EQ(offered("tycho run mine.lua optimizer.e"), "\n") << "lion has no eps";
  EXPECT_EQ(offered("tycho run mine.lua optimizer=adamw optimizer.e"), "optimizer.eps=\n");
}

TEST_F(CompletionTest, OffersKeysAndValuesPastTheCharactersAtWhichBashSplits) {
  EXPECT_EQ(offered("tycho run x.lua seq_l"), "seq_len=\n");
  EXPECT_EQ(offered("tycho run x.lua optimizer.l"), "optimizer.lr=\n");
  EXPECT_EQ(offered("tycho run x.lua precision="), "fp32\nbf16\n");
  EXPECT_EQ(offered("tycho run x.lua seed=1 device=c"), "cpu\ncuda\n");
  EXPECT_EQ(offered("tycho run x.lua model.tied=t"), "true\n");
  EXPECT_EQ(offered("tycho config x.lua --why clip.n"), "clip.norm\n");
  EXPECT_EQ(offered("tycho config x.lua --unset clip.n"), "clip.norm\n");
}

TEST_F(CompletionTest, OffersWhatTheRecipeDefines) {
  write(
      "local t = require \"tycho\"\nlocal r = t.recipe \"mine\"\n"
      "t.component { name = \"look\", fields = { mode = t.choice { \"low\", \"high\" } }, batch_end = "
      "function() end }\n"
      "return r\n",
      "mine.lua");
  EXPECT_EQ(offered("tycho run mine.lua +callbacks.x=loo"), "look\n");
  EXPECT_EQ(offered("tycho run mine.lua callbacks.x.mod"), "callbacks.x.mode=\n");
  EXPECT_EQ(offered("tycho run mine.lua callbacks.x.mode=h"), "high\n");
  EXPECT_EQ(offered("tycho run absent.lua callbacks.x.mod"), "\n");
}

TEST_F(CompletionTest, OffersNothingWhereNothingFits) {
  EXPECT_EQ(offered("tycho nothing x"), "\n");
  EXPECT_EQ(offered("tycho run x.lua nothing.x"), "\n");
}

TEST_F(CompletionTest, PrintsAScriptForEachShell) {
  for (const char* name : {"bash", "zsh", "fish"}) {
    const std::string command = std::string("tycho completion ") + name;
    EXPECT_CONTAINS(here(command).output, " completion candidates ");
    if (here(std::string("command -v ") + name).code == 0) {
      EXPECT_EQ(here(command + " > script && " + name + " -n script").output, "") << name;
    }
  }
  EXPECT_EQ(here("tycho completion tcsh").code, 2);
}

}  // namespace
}  // namespace tycho
