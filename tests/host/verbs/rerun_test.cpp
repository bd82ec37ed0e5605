// A run again from what its folder keeps, with an engine that only writes that folder.
#include <cstdlib>

#include "tests/host/shell.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

class RerunTest : public ShellTest {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    install(TYCHO_FAKE_ENGINE);
    write(
        "local t = require \"tycho\"\nlocal r = require \"base\" :extend \"x\"\nr.seed = "
        "tonumber(t.env(\"SEED\", \"1\"))\n"
        "return r\n");
    write(whole(), "base.lua");
  }
  /// `tycho` in the folder, with the engine that writes run folders.
  Outcome run(const std::string& command, const std::string& before = "") const {
    return here(before + " TYCHO_FAKE_RUN_FOLDER=1 ./bin/tycho " + command);
  }
};

TEST_F(RerunTest, StartsANewRunFromTheOldSources) {
  ASSERT_EQ(run("run x.lua optimizer.lr=2e-3", "SEED=5").code, 0);
  write("broken", "x.lua");
  fs::remove(folder_ / "base.lua");
  const Outcome again = run("rerun runs/x seq_len=64", "SEED=6");
  ASSERT_EQ(again.code, 0) << again.output;
  const Outcome differ = here("tycho diff runs/x runs/x-2");
  EXPECT_EQ(differ.output,
            "key       runs/x           runs/x-2\n"
            "run_name  \"x\"     default  \"x-2\"     argument 4\n"
            "seq_len   1024    default  64        argument 3\n");
  EXPECT_EQ(run("rerun runs/x-2").code, 0);
  EXPECT_TRUE(fs::exists(folder_ / "runs/x-2-2")) << here("ls runs").output;
}

TEST_F(RerunTest, ShowsTheCommandAndStartsNothing) {
  run("run x.lua optimizer.lr=2e-3");
  const Outcome shown = run("rerun runs/x 'optimizer.lr*=2' --print");
  EXPECT_EQ(shown.output,
            "# with the files in runs/x/sources\n"
            "tycho run x.lua optimizer.lr=2e-3 'optimizer.lr*=2' run_name=x-2\n");
  EXPECT_FALSE(fs::exists(folder_ / "runs/x-2"));
  EXPECT_CONTAINS(run("rerun runs/x run_dir=runs/other --print").output, "run_dir=runs/other\n");
}

TEST_F(RerunTest, RefusesWhenSourcesAreMissingOrChanged) {
  run("run x.lua");
  write("-- changed\n", "runs/x/sources/base.lua");
  fs::remove(folder_ / "runs/x/sources/x.lua");
  const Outcome refused = run("rerun runs/x");
  EXPECT_EQ(refused.code, 12);
  EXPECT_CONTAINS(refused.output, "base.lua: runs/x/sources/base.lua was changed after the run started");
  EXPECT_CONTAINS(refused.output, "x.lua: no runs/x/sources/x.lua");
  EXPECT_CONTAINS(refused.output, "runs/x/recipe.lua has every value resolved");
}

TEST_F(RerunTest, RunsAYamlAgain) {
  here("sed '/^tokenizer:/,+1d' " TYCHO_SOURCE_DIR "/tests/golden/import/foundry.yaml > a.yaml");  // no hub
  ASSERT_EQ(run("run a.yaml save_folder=null variables.seed=4").code, 0);
  fs::remove(folder_ / "a.yaml");
  const Outcome again = run("rerun runs/small-4 variables.length=64");
  ASSERT_EQ(again.code, 0) << again.output;
  EXPECT_CONTAINS(here("tycho diff runs/small-4 runs/small-4-2").output, "seq_len");
}

// A recipe that requires a file of a folder in TYCHO_PATH; its callback is a function from there.
TEST_F(RerunTest, FindsFilesOfTychoPathInAnotherShell) {
  fs::create_directories(folder_ / "far/team");
  write("return { lr = 7e-4, look = function(s) end }\n", "far/team/rates.lua");
  write(
      "local t = require \"tycho\"\nlocal rates = require \"team.rates\"\n"
      "local r = require \"base\" :extend \"x\"\nr.optimizer.lr = rates.lr\n"
      "r.callbacks.look = t.observe { batch_end = rates.look }\nreturn r\n");
  const Outcome first = run("run x.lua", "TYCHO_PATH=far");
  ASSERT_EQ(first.code, 0) << first.output;
  EXPECT_CONTAINS(run("check x.lua").output, "no module or recipe \"team.rates\"");
  fs::remove_all(folder_ / "far");
  const Outcome again = run("rerun runs/x", "TYCHO_PATH=elsewhere");
  ASSERT_EQ(again.code, 0) << again.output;
  EXPECT_EQ(here("tycho diff runs/x runs/x-2").output.find("optimizer.lr"), std::string::npos);
  EXPECT_EQ(run("rerun runs/x-2").code, 0) << "its record has the folders, too";
  const Outcome resolved = here("tycho check runs/x/recipe.lua");
  EXPECT_EQ(resolved.code, 0) << resolved.output;
}

// A component in a folder of lua_modules, and one of the user's own folder.
TEST_F(RerunTest, KeepsModulesWithAllOfTheirFiles) {
  fs::create_directories(folder_ / "lua_modules/team");
  fs::create_directories(folder_ / "home/.config/tycho/lua");
  write(
      "local t = require \"tycho\"\nreturn t.component { name = \"look\", fields = { limit = require "
      "\"team.limits\".low },\n"
      "  batch_end = function(ctx, st, cfg) end }\n",
      "lua_modules/team/init.lua");
  write("return { low = 3 }\n", "lua_modules/team/limits.lua");
  write("-- read by another recipe\n", "lua_modules/team/other.lua");
  write("return { lr = 7e-4 }\n", "home/.config/tycho/lua/rates.lua");
  write(
      "local look = require \"team\"\nlocal r = require \"base\" :extend \"x\"\n"
      "r.optimizer.lr = require \"rates\".lr\nr.callbacks.look = look { limit = 4 }\nreturn r\n");
  const Outcome hashes = run("config x.lua --hash", "HOME=home");
  ASSERT_EQ(hashes.code, 0) << hashes.output;
  EXPECT_CONTAINS(hashes.output, "  lua_modules/team/other.lua\n");
  EXPECT_CONTAINS(hashes.output, "  ~/.config/tycho/lua/rates.lua\n");
  EXPECT_CONTAINS(hashes.output, "  lua_modules/team/\n");
  const Outcome first = run("run x.lua callbacks.look.limit=5", "HOME=home");
  ASSERT_EQ(first.code, 0) << first.output;
  EXPECT_CONTAINS(here("cat runs/x/provenance.json").output, "module.lua_modules/team");
  EXPECT_TRUE(fs::exists(folder_ / "runs/x/sources/lua_modules/team/other.lua"))
      << here("find runs/x").output;
  fs::remove_all(folder_ / "lua_modules");
  const Outcome again = run("rerun runs/x", "HOME=elsewhere");
  ASSERT_EQ(again.code, 0) << again.output;
  EXPECT_EQ(here("tycho diff runs/x runs/x-2").output,
            "key       runs/x           runs/x-2\nrun_name  \"x\"     default  \"x-2\"     argument 3\n");
  EXPECT_CONTAINS(here("grep -A4 module runs/x-2/provenance.json").output,
                  here("grep -A4 module runs/x/provenance.json").output);
  const Outcome resolved = here("tycho config runs/x/recipe.lua callbacks.look.limit");
  EXPECT_CONTAINS(resolved.output, "callbacks.look.limit  5");
}

TEST_F(RerunTest, NamesFoldersThatAreNotRuns) {
  EXPECT_EQ(run("rerun").code, 2);
  EXPECT_CONTAINS(run("rerun bin").output, "bin is not a run folder");
  run("run x.lua");
  EXPECT_EQ(run("rerun runs/x other").code, 2);
}

}  // namespace
}  // namespace tycho
