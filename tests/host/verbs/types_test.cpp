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
  EXPECT_CONTAINS(here("cat project/.luarc.json").output, "\"workspace.library\": [\"types\"]");
}

TEST_F(TypesTest, KeepsSettingsThatAreThere) {
  write("{}", ".luarc.json");
  EXPECT_EQ(here("tycho types").output, "wrote ./types/tycho.lua\nkept ./.luarc.json, which was there\n");
  EXPECT_EQ(here("cat .luarc.json").output, "{}");
  EXPECT_CONTAINS(here("tycho types --json").output, "\"kept\"");
}

TEST_F(TypesTest, SaysWhyItCannotWrite) {
  write("", "file");
  EXPECT_EQ(here("tycho types file").code, 15);
}

}  // namespace
}  // namespace tycho
