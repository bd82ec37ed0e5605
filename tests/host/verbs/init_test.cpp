// A new project, from its folder to a first recipe that passes.
#include "tests/host/shell.h"

namespace tycho {
namespace {

using InitTest = ShellTest;

TEST_F(InitTest, MakesAProjectWhoseRecipePasses) {
  const Outcome made = here("tycho init project");
  EXPECT_EQ(made.code, 0) << made.output;
  EXPECT_CONTAINS(made.output, "wrote project/recipes/first.lua");
  EXPECT_CONTAINS(here("cd project && tycho check recipes/first.lua").output, "no problems");
  EXPECT_EQ(here("cd project && tycho plan recipes/first.lua").code, 0);
  EXPECT_CONTAINS(here("cat project/.luarc.json project/types/tycho.lua").output, "tycho.Recipe");
}

TEST_F(InitTest, ItsReadmeHoldsFromTextToTokens) {
  here("tycho init . && mkdir texts && tycho config > texts/a.txt");
  const Outcome made = here(
      "grep -E '^tycho (tokenizer|data|check|plan)' README.md | sed 's/4096/512/' > todo; set -e; . ./todo");
  EXPECT_EQ(made.code, 0) << made.output;
}

TEST_F(InitTest, OverwritesNothing) {
  write("mine", "README.md");
  const Outcome refused = here("tycho init .");
  EXPECT_EQ(refused.code, 2);
  EXPECT_CONTAINS(refused.output, "is not empty, and nothing is overwritten");
  EXPECT_EQ(here("cat README.md; ls -A").output, "mineREADME.md\n");
  EXPECT_CONTAINS(here("tycho init README.md").output, "is a file");
  EXPECT_EQ(here("tycho init").code, 2);
}

TEST_F(InitTest, TakesAnEmptyFolder) { EXPECT_EQ(here("mkdir new && tycho init new").code, 0); }

}  // namespace
}  // namespace tycho
