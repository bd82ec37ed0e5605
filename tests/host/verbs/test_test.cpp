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
  const Outcome all = here("tycho test .");
  EXPECT_EQ(all.code, 0);
  EXPECT_EQ(all.output.find("1 passed, 0 failed\nok      ./x.lua  "), 0) << all.output;
  EXPECT_CONTAINS(here("tycho test x.lua --json").output, "\"state\":\"ok\"");
  EXPECT_CONTAINS(here("mkdir empty; tycho test empty").output, "no recipe and no *_spec.lua found");
  write("local t = require 'tycho'\nreturn { t.recipe 'x' }\n", "list.lua");
  EXPECT_CONTAINS(here("tycho test list.lua").output, "the file returned a table, not a recipe");
}

TEST_F(TestVerbTest, APassingSpecHidesNoBrokenRecipe) {
  write(whole("r.seed = 'x'\n"), "x.lua");
  write("return { text = 'local r = t.recipe \"x\"' }\n", "helper.lua");
  write(
      "local helper = require 'helper'\nit('passes', function() expect(helper.text).to_contain 'recipe' "
      "end)\n",
      "x_spec.lua");
  const Outcome tried = here("tycho test .");
  EXPECT_EQ(tried.code, 1) << tried.output;
  EXPECT_CONTAINS(tried.output, "1 passed, 0 failed\nFAILED  ./x.lua\n");
  EXPECT_EQ(tried.output.find("helper.lua"), std::string::npos) << tried.output;
}

TEST_F(TestVerbTest, SpecsResolveAndBuildRecipes) {
  write(whole("local acme = require 'acme'\nr.seed = acme.seed\n"), "x.lua");
  std::filesystem::create_directories(folder_ / "lib");
  write("return { seed = 23 }\n", "lib/acme.lua");
  write(
      "local t = require 'tycho'\n"
      "it('resolves a file', function() expect(recipe('x.lua', 'seq_len=64').seq_len).to_equal(64) end)\n"
      "it('finds modules of TYCHO_PATH', function()\n"
      "  expect(recipe('x.lua').seed).to_equal(23)\n  expect(require('acme').seed).to_equal(23)\nend)\n"
      "it('raises the report', function()\n"
      "  expect(function() recipe('x.lua', 'optimizer.lr=-1') end).to_fail_with 'number > 0'\nend)\n"
      "it('builds one', function()\n  local r = t.recipe 'y'\n  r.model = t.model.llama { width = 64 }\n"
      "  r.optimizer = t.optim.adamw { lr = 1e-3 }\n  r.max_duration = '10ba'\n"
      "  r.train_data = t.data.mds { local_dir = 'd' }\n  expect(resolve(r).model.width).to_equal(64)\nend)\n"
      "it('says what is wrong with it', function()\n  local r = t.recipe 'y'\n  r.seed = 'x'\n"
      "  expect(function() resolve(r) end).to_fail_with 'seed = \"x\": expected integer'\nend)\n",
      "x_spec.lua");
  const Outcome tried = here("TYCHO_PATH=lib tycho test x_spec.lua");
  EXPECT_EQ(tried.code, 0) << tried.output;
  EXPECT_EQ(tried.output, "5 passed, 0 failed\n");
}

TEST_F(TestVerbTest, CallbacksRunOnAFakeRun) {
  write(whole(
      "r.max_duration = '100ba'\nr.eval_data.val = t.data.mds { local_dir = 'd' }\nr.eval.every = '5ba'\n"
      "r.callbacks.falling = t.control { every = '2ba', state = { last = 9 }, batch_end = function(ctx, st)\n"
      "  if ctx.loss > st.last then ctx.cmd.scale_lr(0.5, { for_next = '3ba' }) end\n"
      "  st.last = ctx.loss\n  ctx.log:metric('last', st.last)\nend }\n"
      "r.callbacks.stop = t.cb.early_stop { patience = 2 }\n"
      "r.callbacks.look = t.observe { ckpt_saved = function(ctx) ctx.log:info('saved ' .. ctx.path) end,\n"
      "  signal = function(ctx) ctx.model:generate('x') end }\n"));
  write(
      "it('counts every and keeps commands', function()\n  local run = fake_run 'x.lua'\n"
      "  run:step { loss = 10 }\n  expect(run.commands).to_equal {}\n  run:step { loss = 10, grad_norm = 2 "
      "}\n"
      "  expect(run.commands[1].text).to_equal 'scale_lr(0.5, for_next = 3ba)'\n"
      "  expect(run.commands[1].arguments.factor).to_equal(0.5)\n  expect(run.metrics.last).to_equal(10)\n"
      "  expect(run:state('falling').last).to_equal(10)\n  expect(run.steps).to_equal(2)\nend)\n"
      "it('fires events', function()\n  local run = fake_run('x.lua', 'callbacks.stop.min_delta=0.1')\n"
      "  for _, loss in ipairs { 2, 1.95, 1.93 } do run:fire('eval_end', { eval = { loss = loss } }) end\n"
      "  expect(run.commands[1].name).to_equal 'stop'\n  run:fire('ckpt_saved', { path = 'p' })\n"
      "  expect(run.events).to_contain { kind = 'info', text = 'saved p' }\nend)\n"
      "it('raises what a callback raises', function()\n  local run = fake_run 'x.lua'\n"
      "  expect(function() run:fire 'signal' end).to_fail_with 'needs no model'\n"
      "  expect(function() run:step { los = 1 } end).to_fail_with 'did you mean \"loss\"'\n"
      "  expect(function() run:fire 'evalend' end).to_fail_with 'did you mean \"eval_end\"'\nend)\n",
      "x_spec.lua");
  const Outcome tried = here("tycho test x_spec.lua");
  EXPECT_EQ(tried.code, 0) << tried.output;
  EXPECT_EQ(tried.output, "3 passed, 0 failed\n");
}

TEST_F(TestVerbTest, AFailureNamesTheLineAndWhatDiffers) {
  write(
      "describe('a', function()\n"
      "  it('table', function()\n    expect({ a = 1, b = { c = 2 } }).to_equal { a = 1, b = { c = 3 } }\n  "
      "end)\n"
      "  it('text', function() expect('x\\ny').to_equal('x\\nz') end)\n"
      "  it('number', function() expect(1.5).to_be_near(1, 0.1) end)\n"
      "  it('error', function() error 'broken' end)\nend)\n",
      "x_spec.lua");
  const Outcome tried = here("tycho test x_spec.lua");
  EXPECT_EQ(tried.code, 1);
  EXPECT_EQ(tried.output,
            "FAILED  x_spec.lua:3  a table\n  at b.c: expected 3, got 2\n"
            "FAILED  x_spec.lua:5  a text\n  line 2 differs\n  expected \"z\"\n  got      \"y\"\n"
            "FAILED  x_spec.lua:6  a number\n  expected 1 to within 0.1, got 1.5\n"
            "FAILED  x_spec.lua:7  a error\n  broken\n"
            "0 passed, 4 failed\n");
  EXPECT_CONTAINS(here("tycho test x_spec.lua --json 2>/dev/null").output,
                  "\"line\":3,\"message\":\"at b.c: expected 3, got 2\"");
}

}  // namespace
}  // namespace tycho
