// Stubs for editors, as files.
#include "tests/host/shell.h"

namespace tycho {
namespace {

using TypesTest = ShellTest;

TEST_F(TypesTest, WritesStubsAndSettings) {
  const Outcome wrote = here("tycho types project");
  EXPECT_EQ(wrote.output, "wrote project/.luarc.json\nwrote project/types/tycho.lua\n");
  EXPECT_CONTAINS(here("cat project/types/tycho.lua").output, "---@class (exact) tycho.Optim.Adamw");
  EXPECT_CONTAINS(here("cat project/types/tycho.lua").output, "---@class (exact) tycho.SweepConfig");
  for (const char* line :
       {"---@operator mul(number|tycho.run.Tensor): tycho.run.Tensor\n",
        "---@operator unm: tycho.run.Tensor\n", "---@field [integer] number|tycho.run.Tensor"})
    EXPECT_CONTAINS(here("cat project/types/tycho.lua").output, line);
  EXPECT_CONTAINS(here("cat project/.luarc.json").output, "\"workspace.library\": [\"types\"]");
}

TEST_F(TypesTest, ThePageOfObjectsIsFresh) {
  const Outcome page = shell("tycho types --markdown | diff - " TYCHO_SOURCE_DIR "/docs/objects.md");
  EXPECT_EQ(page.output, "") << "docs/objects.md is stale: tycho types --markdown > docs/objects.md";
  // Every object that stubs know stands on it.
  const std::string text = shell("tycho types --markdown").output;
  for (const char* heading :
       {"## trainer", "## model", "## tensor", "## data", "## observe_ctx", "## cmd", "## dist"})
    EXPECT_CONTAINS(text, heading);
  EXPECT_CONTAINS(text, "| `.cmd` |");
  EXPECT_CONTAINS(text, "| `:generate(prompt: string\\|integer[], options?: table)` | string\\|integer[] |");
}

TEST_F(TypesTest, KeepsSettingsThatAreThere) {
  write("{}", ".luarc.json");
  EXPECT_EQ(here("tycho types").output, "wrote ./types/tycho.lua\nkept existing ./.luarc.json\n");
  EXPECT_EQ(here("cat .luarc.json").output, "{}");
  EXPECT_CONTAINS(here("tycho types --json").output, "\"kept\"");
}

TEST_F(TypesTest, SaysWhyItCannotWrite) {
  write("", "file");
  EXPECT_EQ(here("tycho types file").code, 15);
  EXPECT_EQ(here("tycho types a b").code, 2);
}

TEST_F(TypesTest, HasTheComponentsOfRecipesAndModules) {
  write(
      "local t = require \"tycho\"\nreturn t.component { name = \"look\", help = \"Looks.\",\n"
      "  fields = { limit = t.integer { default = 3, help = \"Most.\" } }, batch_end = function() end }\n",
      "look.lua");
  EXPECT_EQ(here("tycho types look.lua").code, 0);
  const std::string stubs = here("cat types/tycho.lua").output;
  EXPECT_CONTAINS(stubs, "---Looks.\n---@class (exact) tycho.Cb.Look\n");
  EXPECT_CONTAINS(stubs, "---@field limit integer  Most. Default 3.\n");
  EXPECT_CONTAINS(stubs, "---@field look fun(given?: tycho.Cb.Look|table): tycho.Cb  Looks.\n");
  EXPECT_CONTAINS(here("tycho config look.lua --markdown").output, "### t.cb.look\n\nLooks.\n");
  write("return 3 +\n", "broken.lua");
  const Outcome broken = here("tycho types broken.lua");
  EXPECT_EQ(broken.code, 10);
  EXPECT_CONTAINS(broken.output, "broken.lua:2: not Lua");
  EXPECT_EQ(here("tycho config absent.lua --markdown").code, 10);
}

}  // namespace
}  // namespace tycho
