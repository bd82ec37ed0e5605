// Which keys differ, who set them, and the exit status of diff.
#include "tests/host/shell.h"

namespace tycho {
namespace {

using DiffTest = ShellTest;

TEST_F(DiffTest, ShowsKeysThatDifferAndWhoSetThem) {
  write(whole(), "a.lua");
  write(whole("r.optimizer.lr = 0\n"), "broken.lua");
  write(whole("r.optimizer.lr = 3e-3\n"), "b.lua");
  const Outcome differ = here("tycho diff a.lua b.lua");
  EXPECT_EQ(differ.code, 1);
  EXPECT_EQ(differ.output,
            "key           a.lua           b.lua\noptimizer.lr  0.001  a.lua:5  0.003  b.lua:7\n");
  const Outcome same = here("tycho diff a.lua a.lua");
  EXPECT_EQ(same.code, 0);
  EXPECT_EQ(same.output, "");
  EXPECT_EQ(here("tycho diff a.lua broken.lua").code, 10);
}

TEST_F(DiffTest, ShowsDefaultsAndKeysOfOtherKinds) {
  write(whole(), "a.lua");
  write(whole("r.optimizer = t.optim.lion { lr = 1e-3 }\n"), "b.lua");
  const std::string text = here("tycho diff a.lua b.lua").output;
  EXPECT_CONTAINS(text, "\"adamw\"");
  EXPECT_CONTAINS(text, "\"lion\"");
  EXPECT_CONTAINS(text, "(no such key)");
  EXPECT_CONTAINS(text, "default");
}

TEST_F(DiffTest, WritesJson) {
  write(whole(), "a.lua");
  write(whole("r.seed = 3\n"), "b.lua");
  EXPECT_EQ(here("tycho diff a.lua b.lua --json").output,
            "[\n  {\n    \"key\": \"seed\",\n    \"a\": {\n      \"value\": 17,\n      \"set_by\": "
            "\"default\"\n    },\n"
            "    \"b\": {\n      \"value\": 3,\n      \"set_by\": \"b.lua:7\"\n    }\n  }\n]\n");
  EXPECT_EQ(here("tycho diff a.lua a.lua --json").output, "[]\n");
}

TEST_F(DiffTest, GivesFunctionsInJsonAsConfigDoes) {
  write(whole(), "a.lua");
  write(whole("r.callbacks.c = t.observe { batch_end = function(ctx) print(ctx.step) end }\n"), "b.lua");
  const Outcome differs = here("tycho diff a.lua b.lua --json");
  EXPECT_EQ(differs.code, 1);
  EXPECT_CONTAINS(differs.output,
                  "\"key\": \"callbacks.c.batch_end\",\n    \"a\": null,\n    \"b\": {\n"
                  "      \"value\": {\n        \"at\": \"b.lua:7\",\n        \"hash\": \"");
  EXPECT_CONTAINS(differs.output, "\"set_by\": \"b.lua:7\"");
}

TEST_F(DiffTest, AppliesOverridesToEveryRecipe) {
  write(whole(), "a.lua");
  write(whole("r.optimizer.lr = 3e-3\n"), "b.lua");
  EXPECT_EQ(here("tycho diff a.lua b.lua optimizer.lr=1").code, 0);
  EXPECT_EQ(here("tycho diff a.lua b.lua 'optimizer.lr*=2'").output,
            "key           a.lua              b.lua\noptimizer.lr  0.002  argument 3  0.006  argument 3\n");
  here("tycho check a.lua --json > a.json");
  EXPECT_CONTAINS(here("tycho diff a.json a.lua seed=3").output, "argument 3");
  const Outcome refused = here("tycho diff a.json a.json seed=3");
  EXPECT_EQ(refused.code, 2);
  EXPECT_CONTAINS(refused.output,
                  "[tycho diff] seed=3 applies to recipes, and neither a.json nor a.json is one");
}

TEST_F(DiffTest, ReadsResolvedJson) {
  write(whole(), "a.lua");
  here("tycho check a.lua --json > a.json");
  EXPECT_EQ(here("tycho diff a.lua a.json").code, 0);
  write("{\"a\": 1}", "other.json");
  const Outcome refused = here("tycho diff a.lua other.json");
  EXPECT_EQ(refused.code, 12);
  EXPECT_CONTAINS(refused.output, "other.json is not a resolved recipe");
}

TEST_F(DiffTest, SaysWhatIsMissing) {
  write(whole(), "a.lua");
  EXPECT_EQ(here("tycho diff a.lua").code, 2);
  EXPECT_EQ(here("tycho diff a.lua a.lua a.lua").code, 2);
  EXPECT_CONTAINS(here("mkdir empty; tycho diff a.lua empty").output, "is not a run folder");
}

}  // namespace
}  // namespace tycho
