// Sweeps of Weights & Biases: which lines they become, and what is refused by name.
#include <gtest/gtest.h>

#include <string>

#include "bindings/import/import.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

std::string sweep_lua_of(const std::string& text) { return import_recipe("sweeps/my sweep.yaml", text).lua; }

std::string sweep_refusal(const std::string& text) {
  try {
    return "accepted: " + sweep_lua_of(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kRecipe);
    return error.what();
  }
}

TEST(WandbSweep, EveryDistributionWithACounterpartIsWritten) {
  const std::string lua = sweep_lua_of(
      "program: recipes/demo.lua\nmethod: random\nrun_cap: 7\n"
      "metric: {name: val_loss, goal: maximize}\n"
      "parameters:\n"
      "  a: {values: [1, 0.5, adamw, null, true, [0.9, 0.95]]}\n"
      "  b: {value: 3}\n"
      "  c: {min: 1, max: 8}\n"
      "  d: {min: 0.0, max: 0.3}\n"
      "  e: {distribution: log_uniform_values, min: 1e-4, max: 1e-2}\n"
      "  f: {distribution: log_uniform, min: -1, max: 1}\n"
      "  g: {distribution: normal, mu: 1, sigma: 0.5}\n"
      "  h: {distribution: q_uniform, min: 0, max: 1, q: 0.25}\n"
      "  nested: {parameters: {i: {values: [1, 2]}}}\n");
  EXPECT_EQ(
      lua,
      "-- Imported from sweeps/my sweep.yaml, a sweep of Weights & Biases.\n"
      "local t = require \"tycho\"\n"
      "local s = t.sweep \"my-sweep\"\n"
      "s.recipe = \"recipes/demo.lua\"\n"
      "s.metric.name = \"eval.loss\"\n"
      "s.metric.goal = \"max\"\n"
      "s.space[\"a\"] = t.space.choice { \"1\", \"0.5\", \"adamw\", \"null\", \"true\", \"[0.9,0.95]\" }\n"
      "s.pins[\"b\"] = \"3\"\n"
      "s.space[\"c\"] = t.space.int(1, 8)\n"
      "s.space[\"d\"] = t.space.range(0.0, 0.3)\n"
      "s.space[\"e\"] = t.space.log(1e-4, 1e-2)\n"
      "s.space[\"f\"] = t.space.log(0.367879, 2.71828)\n"
      "s.space[\"g\"] = t.space.normal(1, 0.5)\n"
      "s.space[\"h\"] = t.space.range(0, 1, 0.25)\n"
      "s.space[\"nested.i\"] = t.space.choice { \"1\", \"2\" }\n"
      "s.search = t.search.random { trials = 7 }\n"
      "return s\n");
  EXPECT_CONTAINS(sweep_lua_of("method: grid\nparameters: {a: {min: 1, max: 3}}\n"), "t.space.int(1, 3, 1)");
}

TEST(WandbSweep, WhatHasNoCounterpartIsNamedAtItsLine) {
  const std::string parameters = "parameters: {a: {values: [1]}}\n";
  EXPECT_CONTAINS(sweep_refusal("method: bayes\n" + parameters), "1:9: method: bayes is not supported");
  EXPECT_CONTAINS(sweep_refusal("program: x.lua\n" + parameters),
                  "method: expected grid or random, got nothing");
  EXPECT_CONTAINS(sweep_refusal("method: grid\nparameters: {a: {distribution: beta}}\n"),
                  "a: distribution: expected one of");
  EXPECT_CONTAINS(sweep_refusal("method: grid\nparameters: {a: 3}\n"), "write  a: {value: 3}");
  EXPECT_CONTAINS(sweep_refusal("method: grid\nparameters: {a: {min: 1}}\n"),
                  "a: expected a number as max, got nothing");
  EXPECT_CONTAINS(sweep_refusal("method: grid\nparameters: {a: {min: 1, max: x}}\n"),
                  "a: expected a number as max, got x");
  EXPECT_CONTAINS(sweep_refusal("method: grid\nparameters: {a: {values: [1], probabilities: [1]}}\n"),
                  "probabilities are not supported");
  EXPECT_CONTAINS(sweep_refusal("method: grid\nparameters: {}\n"), "expected names");
  EXPECT_CONTAINS(sweep_refusal("method: grid\nmetric: {goal: least}\n" + parameters),
                  "expected minimize or maximize");
  const std::string several = sweep_refusal("method: bayes\nfuture_key: 1\n" + parameters);
  EXPECT_CONTAINS(several, "future_key: expected a key of a sweep");
  EXPECT_CONTAINS(several, "2 keys of sweeps/my sweep.yaml cannot be imported");
}

TEST(WandbSweep, WhatIsLeftOutIsSaid) {
  const Imported made =
      import_recipe("s.yaml",
                    "program: train.py\nmethod: random\nproject: p\nparameters: {a: {values: [1]}}\n"
                    "early_terminate: {type: hyperband, min_iter: 3}\n");
  ASSERT_EQ(made.notes.size(), 2u);
  EXPECT_CONTAINS(made.notes[0], "line 1  program: train.py is no recipe");
  EXPECT_CONTAINS(made.notes[1], "line 5  early_terminate is left out");
}

}  // namespace
}  // namespace tycho
