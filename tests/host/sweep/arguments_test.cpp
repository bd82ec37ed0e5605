// Spaces of a sweep: steps and counts, what other systems write, several conditions of one key, and sweeps of
// Weights & Biases.
#include "tests/host/sweep/sweep_fixture.h"

namespace tycho {
namespace {

/// The values of a key in the printed trials of a sweep, in their order.
std::vector<std::string> values_of(const std::string& printed, const std::string& key) {
  std::vector<std::string> values;
  const std::string sign = " " + key + "=";
  for (size_t at = printed.find(sign); at != std::string::npos; at = printed.find(sign, at + 1)) {
    const size_t begin = at + sign.size();
    values.push_back(printed.substr(begin, printed.find_first_of(" \n", begin) - begin));
  }
  return values;
}

/// What a hint says to type, without the quotes of the shell.
std::string advised(const std::string& output) {
  const size_t at = output.find("write  ");
  if (at == std::string::npos) return "";
  std::string text = output.substr(at + 7, output.find('\n', at) - at - 7);
  if (text.starts_with('\'')) text = text.substr(1, text.find('\'', 1) - 1);
  return text;
}

TEST_F(SweepTest, ASpaceWithAStepOrACountHasTheseValues) {
  using Values = std::vector<std::string>;
  const std::tuple<const char*, const char*, Values> kSpaces[] = {
      {"optimizer.weight_decay=range(0,0.3,0.1)", "optimizer.weight_decay", {"0", "0.1", "0.2", "0.3"}},
      {"optimizer.weight_decay=range(0,0.35,0.1)", "optimizer.weight_decay", {"0", "0.1", "0.2", "0.3"}},
      {"optimizer.lr=log(1e-4,1e-2,3)", "optimizer.lr", {"0.0001", "0.001", "0.01"}},
      {"seed=int(2,8,3)", "seed", {"2", "5", "8"}}};
  for (const auto& [argument, key, values] : kSpaces) {
    const Outcome printed =
        run(std::string("sweep recipe.lua '") + argument + "' metric.name=loss search=grid --print");
    ASSERT_EQ(printed.code, 0) << argument << printed.output;
    EXPECT_EQ(values_of(printed.output, key), values) << argument;
  }
  write(sweep("s.space[\"optimizer.lr\"] = t.space.log(1e-4, 1e-2, 3)\ns.search = t.search.grid()\n"),
        "s.lua");
  EXPECT_EQ(values_of(run("sweep s.lua --print").output, "optimizer.lr"),
            (Values{"0.0001", "0.001", "0.01"}));
}

TEST_F(SweepTest, AStepOrACountThatFitsNoSpaceIsRefusedAtItsArgument) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"optimizer.lr=range(0,0.3,0)", "a step above 0, got 0"},
      {"optimizer.lr=range(0,0.3,0.5)", "a step of at most 0.3, got 0.5"},
      {"optimizer.lr=range(0,1,1e-9)", "at most 10000 values"},
      {"optimizer.lr=log(1e-4,1e-2,2.5)", "a count of 2 to 10000, got 2.5"},
      {"optimizer.lr=log(0,1e-2,3)", "numbers above 0, got 0"},
      {"seed=int(1,8,0.5)", "integers"},
      {"optimizer.lr=normal(0,1,3)", "write  normal(MEAN,STD)"},
      {"optimizer.lr=log(1e-4)", "write  log(LOW,HIGH) or log(LOW,HIGH,COUNT)"},
      {"optimizer.lr=log(1e-2,1e-4)", "expects the lower number first"}};
  for (const auto& [argument, said] : kWrong) {
    const Outcome planned = run(std::string("sweep plan recipe.lua '") + argument + "' metric.name=loss");
    EXPECT_EQ(planned.code, 10) << argument << planned.output;
    EXPECT_CONTAINS(planned.output, said);
    EXPECT_CONTAINS(planned.output, "argument 3");
    EXPECT_EQ(planned.output.find("the space is empty"), std::string::npos) << planned.output;
  }
}

TEST_F(SweepTest, SpacesOfOtherSystemsAreAnsweredWithTheRightSpelling) {
  // More of them: tests/lua/sweep_spec.lua
  const std::pair<const char*, const char*> kSpellings[] = {
      {"optimizer.lr=interval(1e-4,1e-2)", "optimizer.lr=log(1e-4,1e-2)"},
      {"optimizer.lr=uniform(0.1,0.3)", "optimizer.lr=range(0.1,0.3)"},
      {"optimizer.lr=hp.loguniform(\"lr\",-4,-2)", "optimizer.lr=log(0.01832,0.1353)"},
      {"model.width=choice([64,128])", "model.width=choice(64,128)"},
      {"optimizer.lr=log(1e-4,1e-2", "optimizer.lr=log(1e-4,1e-2)"},
      {"optimizer.lr=1e-3 1e-2", "optimizer.lr=1e-3,1e-2"},
      {"learning_rate=loguniform(1e-4,1e-2)", "optimizer.lr=log(1e-4,1e-2)"}};
  for (const auto& [typed, right] : kSpellings) {
    const Outcome planned = run(std::string("sweep plan recipe.lua '") + typed + "' metric.name=loss -n 2");
    EXPECT_EQ(planned.code, 10) << typed << planned.output;
    EXPECT_EQ(advised(planned.output), right) << typed << planned.output;
    EXPECT_EQ(planned.output.find("the space is empty"), std::string::npos) << planned.output;
    const Outcome again =
        run("sweep plan recipe.lua '" + advised(planned.output) + "' metric.name=loss -n 2");
    EXPECT_EQ(again.code, 0) << right << again.output;
  }
}

TEST_F(SweepTest, ASpaceInAFileIsAnsweredWithTheConstructor) {
  write(sweep("s.space[\"optimizer.lr\"] = t.space.loguniform(1e-4, 1e-2)\n"), "s.lua");
  EXPECT_CONTAINS(run("sweep plan s.lua").output, "write  t.space.log(1e-4, 1e-2)");
  write(sweep("s.space[\"model.width\"] = t.space.int(64, 128)\n"
              "s:skip(function(p) return p[\"model.width\"] % 8 ~= 0 end)\n"),
        "s.lua");
  EXPECT_EQ(run("sweep plan s.lua").code, 0) << "s:skip leaves out what does not fit";
}

TEST_F(SweepTest, ARunThatIsGivenASpaceNamesTheSweepThatTakesIt) {
  for (const char* typed : {"optimizer.lr=interval(1e-4,1e-2)", "model.tied=True,False",
                            "optimizer.lr=hp.loguniform(\"lr\",-4,-2)", "model.layers=1..4"}) {
    const Outcome refused = run(std::string("check recipe.lua '") + typed + "'");
    EXPECT_EQ(refused.code, 10) << typed << refused.output;
    const std::string kBefore = "tycho sweep RECIPE ";
    const size_t at = refused.output.find(kBefore);
    ASSERT_NE(at, std::string::npos) << typed << refused.output;
    const size_t begin = at + kBefore.size();
    const std::string word = refused.output.substr(begin, refused.output.find('\n', begin) - begin);
    EXPECT_EQ(run("sweep plan recipe.lua " + word + " metric.name=loss -n 2").code, 0) << word;
  }
}

TEST_F(SweepTest, OneKeyHasACaseForEachCondition) {
  const std::string optimizers =
      "s.space.optimizer = t.space.choice { \"adamw{lr=1e-3}\", \"lion{lr=1e-4}\" }\n";
  const std::string lion = "t.space.when({ optimizer = \"lion{lr=1e-4}\" }, t.space.choice { 1e-5, 2e-5 })";
  write(sweep(optimizers + "s.space[\"optimizer.lr\"] = t.space.cases { " + lion +
              ", t.space.log(1e-3, 1e-1) }\ns.search = t.search.grid { [\"optimizer.lr\"] = 3 }\n"),
        "s.lua");
  const Outcome grid = run("sweep s.lua --print 2>/dev/null");
  ASSERT_EQ(grid.code, 0) << grid.output;
  EXPECT_EQ(values_of(grid.output, "optimizer.lr"),
            (std::vector<std::string>{"0.001", "0.01", "0.1", "1e-05", "2e-05"}));
  write(sweep(optimizers + "s.space[\"optimizer.lr\"] = t.space.cases { " + lion +
              ", t.space.log(1e-3, 1e-1) }\ns.search = t.search.random { trials = 20 }\n"),
        "s.lua");
  std::istringstream lines(run("sweep s.lua --print 2>/dev/null").output);
  int num_lion = 0, num_trials = 0;
  for (std::string line; std::getline(lines, line); ++num_trials) {
    const bool is_lion = line.find("lion") != std::string::npos;
    num_lion += is_lion ? 1 : 0;
    const double lr = std::stod(values_of(line, "optimizer.lr").at(0));
    EXPECT_EQ(lr < 1e-4, is_lion) << line;
  }
  EXPECT_GT(num_lion, 1);
  EXPECT_GT(num_trials, num_lion + 1);
}

TEST_F(SweepTest, ASecondConditionOfAKeyIsNotLostSilently) {
  const std::string one = "s.space[\"optimizer.lr\"] = t.space.when({ seed = 1 }, t.space.log(1e-4, 1e-2))\n";
  write(sweep("s.space.seed = t.space.choice { 1, 2 }\n" + one + one), "s.lua");
  const Outcome planned = run("sweep plan s.lua");
  EXPECT_EQ(planned.code, 10) << planned.output;
  EXPECT_CONTAINS(planned.output, "optimizer.lr has a condition already, at s.lua:7");
  EXPECT_CONTAINS(planned.output, "t.space.cases { t.space.when(...), t.space.when(...) }");
  write(sweep("s.space[\"optimizer.lr\"] = t.space.cases { 3 }\n"), "s.lua");
  EXPECT_CONTAINS(run("sweep plan s.lua").output, "t.space.cases expects a list of spaces for one key");
}

TEST_F(SweepTest, AHintToWhoChangesASweepCanBeTyped) {
  write(sweep("s.space[\"optimizer.lr\"] = t.space.choice { 1e-3 }\n"), "s.lua");
  ASSERT_EQ(run("sweep s.lua").code, 0);
  const std::pair<const char*, const char*> kWrong[] = {
      {"space.optimizer.lr=loguniform(1e-4,1e-2)", "space.optimizer.lr=log(1e-4,1e-2)"},
      {"space.optimizer.lr=choice([1e-3,2e-3])", "space.optimizer.lr=choice(1e-3,2e-3)"},
      {"space.optimizer.lr=[1e-3,2e-3]", "space.optimizer.lr=1e-3,2e-3"},
      {"space.learning_rate=1e-3,2e-3", "space.optimizer.lr=1e-3,2e-3"},
      {"space.model.layers=range(1,4)", "space.model.layers=int(1,4)"},
      {"optimizer.lr=1e-3,2e-3", "space.optimizer.lr=1e-3,2e-3"},
      {"optimizer.eps=1e-7", "pins.optimizer.eps=1e-7"}};
  for (const auto& [typed, right] : kWrong) {
    const Outcome refused = run(std::string("sweep extend s trials=2 '") + typed + "'");
    EXPECT_EQ(refused.code, 10) << typed << refused.output;
    EXPECT_EQ(advised(refused.output), right) << typed << refused.output;
    const Outcome again = run("sweep extend s trials=2 '" + advised(refused.output) + "'");
    EXPECT_EQ(again.code, 0) << right << again.output;
  }
  const Outcome one = run("sweep extend s trials=2 space.optimizer.lr=1e-3");
  EXPECT_EQ(one.code, 0) << one.output;
}

TEST_F(SweepTest, ArgumentsReachTheSpaceUnderTheKeysOfTheRecipe) {
  write(sweep("s.space[\"optimizer.lr\"] = t.space.choice { 1e-3 }\ns.search = t.search.grid()\n"), "s.lua");
  ASSERT_EQ(run("sweep s.lua").code, 0);
  const Outcome extended = run("sweep extend s 'space.optimizer.lr=1e-3,2e-3' pins.optimizer.eps=1e-7");
  EXPECT_EQ(extended.code, 0) << extended.output;
  EXPECT_EQ(table().at("trials").size(), 3u);
  for (const char* space :
       {"log(1e-4,1e-2)", "range(0.1,0.3,0.1)", "log{low=1e-4,high=1e-2}", "normal(1,0.1)"})
    EXPECT_EQ(run(std::string("sweep plan s.lua search=random 'space.optimizer.lr=") + space + "'").code, 0)
        << space;
  const Outcome wrong = run("sweep extend s 'space.optimizer.lrr=1e-3,2e-3'");
  EXPECT_EQ(wrong.code, 10);
  EXPECT_CONTAINS(wrong.output, "did you mean  optimizer.lr");
}

TEST_F(SweepTest, ARecipeFileOfAnyNameIsSwept) {
  write(whole("r.max_duration = \"20ba\"\n"), "größe zwei.lua");
  const Outcome swept = run("sweep 'größe zwei.lua' 'optimizer.lr=1e-3,2e-3' metric.name=loss -n 2");
  EXPECT_EQ(swept.code, 0) << swept.output;
  EXPECT_EQ(table("gr--e-zwei").at("trials").size(), 2u);
}

TEST_F(SweepTest, ASweepOfWeightsAndBiasesRuns) {
  write(
      "program: recipe.lua\nmethod: grid\nname: from wandb\nmetric: {name: train/loss, goal: minimize}\n"
      "parameters:\n  optimizer.lr: {values: [0.001, 0.002]}\n  model:\n    parameters:\n"
      "      layers: {min: 1, max: 2}\n  seed: {value: 3}\n",
      "wandb.yaml");
  const Outcome printed = run("sweep wandb.yaml --print");
  ASSERT_EQ(printed.code, 0) << printed.output;
  EXPECT_CONTAINS(printed.output, "metric train/loss is loss here");
  EXPECT_EQ(values_of(printed.output, "model.layers").size(), 4u);
  EXPECT_EQ(values_of(printed.output, "seed"), std::vector<std::string>(4, "3"));
  ASSERT_EQ(run("sweep wandb.yaml").code, 0);
  EXPECT_EQ(states(table("from-wandb")), std::set<std::string>{"finished"});
  EXPECT_EQ(run("sweep set from-wandb report.sort=optimizer.lr").code, 0);
  EXPECT_CONTAINS(run("run wandb.yaml").output, "tycho sweep wandb.yaml");
  write("method: random\nparameters: {learning_rate: {min: 0.1, max: 0.2}}\n", "wrong.yaml");
  const Outcome wrong = run("sweep wrong.yaml recipe=recipe.lua metric.name=loss");
  EXPECT_EQ(wrong.code, 10);
  EXPECT_CONTAINS(wrong.output, "wrong.yaml:2:");
  EXPECT_CONTAINS(wrong.output, "unknown key  learning_rate");
}

}  // namespace
}  // namespace tycho
