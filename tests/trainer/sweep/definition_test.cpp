// Identity of trials, and definitions as files.
#include "trainer/sweep/definition.h"

#include "tests/trainer/sweep/sweep_fixture.h"

namespace tycho {
namespace {

using DefinitionTest = SweepBoardTest;

TEST_F(DefinitionTest, ATrialIsItsPinsInAnyOrderAndItsRecipe) {
  EXPECT_EQ(trial_id({"a=1", "b=2"}, "r"), trial_id({"b=2", "a=1"}, "r"));
  EXPECT_NE(trial_id({"a=1"}, "r"), trial_id({"a=1"}, "s"));
  EXPECT_NE(trial_id({"a=1"}, "r"), trial_id({"a=2"}, "r"));
  EXPECT_NE(recipe_identity_hash({{"x.lua", "1"}}, {}),
            recipe_identity_hash({{"x.lua", "1"}}, {{"seed", "3"}}));
}

TEST_F(DefinitionTest, ReadsBackWhatWasWritten) {
  const SweepDefinition definition = define(3, asha({{5, DurationUnit::kBatch}}));
  const std::string hash = write_definition(real_files(), dir_.path(), definition);
  const SweepDefinition back = read_definition(dir_.path(), hash);
  EXPECT_EQ(definition_hash(back), hash);
  EXPECT_EQ(back.config.search.as<AshaSearch>().rungs[0].str(), "5ba");
  EXPECT_EQ(back.trials[2].values.at("optimizer.lr"), "3");
}

TEST_F(DefinitionTest, SaysWhichFilesOfARecipeChanged) {
  EXPECT_EQ(recipe_changes({{"a", "1"}}, {{"a", "1"}}), "");
  EXPECT_EQ(recipe_changes({{"a", "1"}, {"b", "1"}}, {{"a", "2"}, {"c", "1"}}),
            "\n  a has changed\n  b is no longer used\n  c is new");
}

}  // namespace
}  // namespace tycho
