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
}

}  // namespace
}  // namespace tycho
