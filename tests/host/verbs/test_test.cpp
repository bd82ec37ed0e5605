// tycho test over recipes: which pass, which are for others to extend, which are wrong.
#include "tests/host/shell.h"

namespace tycho {
namespace {

using TestVerbTest = ShellTest;

TEST_F(TestVerbTest, TriesEveryRecipeOfAFolder) {
  std::filesystem::create_directories(folder_ / "recipes/base");
  write(whole("r.optimizer.lr = t.required\n"), "recipes/base/small.lua");
  write("local t = require 'tycho'\nlocal r = t.recipe 'bare'\nr.seq_len = 8\nreturn r\n",
        "recipes/bare.lua");
  write("local r = require 'bare' :extend 'y'\nreturn r\n", "recipes/wrong.lua");
  write("local r = require 'base.small' :extend 'x'\nr.optimizer.lr = 1\nreturn r\n", "recipes/x.lua");
  write("return { note = 'a recipe is made by t.recipe \"x\"' }\n", "recipes/notes.lua");
  write("return 1\n", "recipes/number.lua");
  write(
      "local t = require 'tycho'\nlocal r = t.recipe 'h'\nr.model = t.model.hf { path = 'nowhere' }\nreturn "
      "r\n",
      "recipes/hub.lua");
  write(
      "local t = require 'tycho'\nlocal s = t.sweep 's'\ns.recipe = 'recipes/x.lua'\ns.metric.name = 'loss'\n"
      "s.space.seed = t.space.choice { 1, 2 }\ns.search = t.search.grid()\nreturn s\n",
      "recipes/many.lua");
  const Outcome tried = here("tycho test recipes");
  EXPECT_EQ(tried.code, 1);
  const std::string hash =
      here("tycho check recipes/x.lua --json 2>/dev/null | grep '\"hash\"' | cut -d'\"' -f4").output;
  EXPECT_CONTAINS(tried.output,
                  "base    recipes/bare.lua        requires max_duration, model, optimizer, train_data\n");
  EXPECT_CONTAINS(tried.output, "base    recipes/base/small.lua  requires optimizer.lr\n");
  EXPECT_CONTAINS(tried.output, "ok      recipes/x.lua           " + hash.substr(0, 32) + "  ");
  EXPECT_CONTAINS(tried.output, " parameters, 10 steps\n");
  EXPECT_CONTAINS(tried.output, "absent  recipes/hub.lua         recipes/hub.lua:3:");
  EXPECT_CONTAINS(tried.output, "ok      recipes/many.lua        a sweep of 2 trials\n");
  EXPECT_CONTAINS(tried.output, "FAILED  recipes/wrong.lua\n");
  EXPECT_CONTAINS(tried.output, "max_duration is required and not set");
  EXPECT_CONTAINS(tried.output, "6 recipes: 2 valid, 2 to extend, 1 with missing files, 1 invalid\n");
  EXPECT_EQ(tried.output.find("notes.lua"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "runs"));
}

TEST_F(TestVerbTest, AllOfThisRepositoryAreValid) {
  const Outcome tried = shell("cd " TYCHO_SOURCE_DIR " && tycho test recipes");
  EXPECT_EQ(tried.code, 0) << tried.output;
  EXPECT_CONTAINS(tried.output, ", 0 invalid\n");
}

TEST_F(TestVerbTest, TakesNamedFilesAndSpecsBeside) {
  write(whole(), "x.lua");
  write("describe('x', function() it('is', function() expect(1).to_equal(1) end) end)\n", "x_spec.lua");
  const Outcome both = here("tycho test x.lua x_spec.lua");
  EXPECT_EQ(both.code, 0);
  EXPECT_EQ(both.output.find("1 passed, 0 failed\nok      x.lua  "), 0) << both.output;
  EXPECT_EQ(here("tycho test .").output, "1 passed, 0 failed\n") << "what lies beside a spec belongs to it";
  EXPECT_CONTAINS(here("tycho test x.lua --json").output, "\"state\":\"ok\"");
  EXPECT_CONTAINS(here("mkdir empty; tycho test empty").output, "no recipe and no *_spec.lua found");
  write("local t = require 'tycho'\nreturn { t.recipe 'x' }\n", "list.lua");
  EXPECT_CONTAINS(here("tycho test list.lua").output, "the file returned a table, not a recipe");
}

}  // namespace
}  // namespace tycho
