// Recipes from file to checked config.
#include "bindings/define/recipe.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "trainer/recipe/config_io.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;

class RecipeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "tycho-recipe-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string write(const std::string& text, const std::string& name = "x.lua") {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  /// A recipe with everything that is required, and these lines.
  std::string whole(const std::string& lines = "") {
    return write(
        "local t = require \"tycho\"\nlocal r = t.recipe \"x\"\nr.max_duration = \"10ba\"\n"
        "r.model = t.model.llama { width = 64, heads = 4, layers = 2, ffn_width = 128 }\n"
        "r.optimizer = t.optim.adamw { lr = 1e-3 }\nr.train_data = t.data.mds { local_dir = \"data\" }\n" +
        lines + "return r\n");
  }
  static std::string report_of(const std::string& file, std::vector<PinArgument> pins = {}) {
    try {
      resolve_recipe({.file = file, .pins = std::move(pins)});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kRecipe);
      return error.what();
    }
    ADD_FAILURE() << "no report for " << file;
    return "";
  }
  fs::path folder_;
};

#define EXPECT_CONTAINS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST_F(RecipeTest, BecomesTheConfigThatTheEngineReads) {
  const ResolvedRecipe recipe =
      resolve_recipe({.file = whole("r.seq_len = 128\n"), .pins = {{2, "optimizer.lr=0.5"}}});
  EXPECT_EQ(recipe.name, "x");
  EXPECT_EQ(recipe.config.run_name, "x");
  EXPECT_EQ(recipe.config.seq_len, 128);
  EXPECT_EQ(recipe.config.model.as<LlamaConfig>().width, 64);
  EXPECT_EQ(recipe.config.optimizer.as<AdamWConfig>().lr, 0.5);
  EXPECT_EQ(recipe.hash, config_hash(recipe.tree));
  EXPECT_EQ(recipe.history["optimizer.lr"][0]["at"], "argument 2");
  EXPECT_EQ(recipe.sources.size(), 1u);
  const Json identity = recipe_identity(recipe);
  EXPECT_EQ(identity["sources"].size(), 1u);
  for (const auto& [file, hash] : identity["sources"].items())
    EXPECT_EQ(recipe.history["source." + file][0]["value"], hash);
}

TEST_F(RecipeTest, ResolvedTextGivesTheSameHash) {
  const ResolvedRecipe first = resolve_recipe({.file = whole("r.micro_batch = \"2sp\"\n")});
  const ResolvedRecipe again = resolve_recipe({.file = write(first.lua, "again.lua")});
  EXPECT_EQ(again.hash, first.hash);
  EXPECT_EQ(again.tree, first.tree);
  EXPECT_EQ(again.lua, first.lua);
}

TEST_F(RecipeTest, RulesBetweenKeysAreReportedAtTheirLine) {
  const std::string file = whole("r.model.kv_heads = 3\n");
  EXPECT_CONTAINS(report_of(file), file + ":4:47: model.heads: ");
}

TEST_F(RecipeTest, ChecksKnowStepsTokensAndParameters) {
  // Two tables of 256 x 64; two blocks of four square matrices, three of the MLP and two norms; the last
  // norm.
  const std::string check =
      "r.seq_len, r.global_batch, r.model.vocab_size = 32, \"8sp\", 256\n"
      "r:check(\"size\", function(c)\n"
      "  return c.steps == 10 and c.tokens_per_step == 256 and c.total_tokens == 2560 and c.num_params == "
      "115008,\n"
      "    (\"%d %d %d %d\"):format(c.steps, c.tokens_per_step, c.total_tokens, c.num_params)\nend)\n";
  EXPECT_NO_THROW(resolve_recipe({.file = whole(check)}));
  EXPECT_CONTAINS(report_of(whole(check), {{2, "max_duration=20ba"}}), "does not hold: 20 256 5120 115008");
  // Epochs of a data set that is not there: only the run can tell.
  EXPECT_NO_THROW(resolve_recipe({.file = whole(check), .pins = {{2, "max_duration=1ep"}}}));
}

TEST_F(RecipeTest, MissingFilesAreNamedWithWhatIsThere) {
  whole();
  EXPECT_CONTAINS(report_of((folder_ / "xx.lua").string()), "cannot read");
  EXPECT_CONTAINS(report_of((folder_ / "xx.lua").string()), "x.lua");
  EXPECT_CONTAINS(report_of(folder_.string()), "is a folder");
}

TEST_F(RecipeTest, EndlessLoopsAreReportedAtTheirLine) {
  const std::string file = whole("while true do end\n");
  EXPECT_CONTAINS(report_of(file), file + ":7: stopped after 100 million instructions");
}

TEST_F(RecipeTest, SecretsOfTheEnvironmentAreNotKept) {
  setenv("TYCHO_TEST_API_KEY", "hunter2", 1);
  const ResolvedRecipe recipe =
      resolve_recipe({.file = whole("local key = t.env(\"TYCHO_TEST_API_KEY\")\n")});
  EXPECT_TRUE(recipe.history.contains("env.TYCHO_TEST_API_KEY"));
  EXPECT_EQ(recipe.history.dump().find("hunter2"), std::string::npos);
}

TEST_F(RecipeTest, ASecretCannotBecomePartOfTheRecipe) {
  setenv("TYCHO_TEST_HIDDEN", "canary-31", 1);
  for (const char* lines : {"r.train_data.local_dir = 'x/' .. t.secret 'TYCHO_TEST_HIDDEN'\n",
                            "r.eval_data[t.secret 'TYCHO_TEST_HIDDEN'] = t.data.mds { local_dir = 'd' }\n"}) {
    const std::string report = report_of(whole(lines));
    EXPECT_CONTAINS(report, "holds a secret of the environment");
    EXPECT_EQ(report.find("canary"), std::string::npos) << report;
  }
  EXPECT_CONTAINS(report_of(whole("r.train_data.local_dir = t.secret 'TYCHO_TEST_HIDDEN'\n")),
                  "[recipe] train_data.local_dir holds");
  const ResolvedRecipe recipe = resolve_recipe(
      {.file =
           whole("r.train_data.local_dir = t.secret 'TYCHO_TEST_HIDDEN'\nr.train_data.local_dir = 'd'\n")});
  EXPECT_EQ(recipe.history.dump().find("canary"), std::string::npos) << recipe.history.dump();
}

TEST_F(RecipeTest, ReportsAndErrorsDoNotShowSecrets) {
  setenv("TYCHO_TEST_HIDDEN", "canary-32", 1);
  setenv("TYCHO_TEST_API_KEY", "canary-33", 1);
  for (const char* lines : {"r.seed = t.secret 'TYCHO_TEST_HIDDEN'\n",
                            "error(t.secret 'TYCHO_TEST_HIDDEN')\n", "error(t.env 'TYCHO_TEST_API_KEY')\n"}) {
    const std::string report = try_recipe({.file = whole(lines)}).report;
    EXPECT_CONTAINS(report, "***");
    EXPECT_EQ(report.find("canary"), std::string::npos) << report;
  }
  const Json shown = show_config({.recipe = {.file = whole("r.run_name = t.secret 'TYCHO_TEST_HIDDEN'\n")}});
  EXPECT_EQ(shown.dump().find("canary"), std::string::npos);
}

TEST_F(RecipeTest, ASecretThatIsTooShortToBeMaskedIsWarnedOf) {
  setenv("TYCHO_TEST_HIDDEN", "12345", 1);
  const ResolvedRecipe recipe = resolve_recipe({.file = whole("local pin = t.secret 'TYCHO_TEST_HIDDEN'\n")});
  EXPECT_CONTAINS(recipe.warnings.dump(), "TYCHO_TEST_HIDDEN is too short to be masked");
  EXPECT_EQ(recipe.history.dump().find("12345"), std::string::npos);
}

TEST_F(RecipeTest, ConfigShowsValuesHelpAndPlaces) {
  ConfigQuery query = {.recipe = {.file = whole(), .pins = {{2, "seed=3"}}}};
  const Json shown = show_config(query);
  EXPECT_CONTAINS(shown["text"].get<std::string>(), "argument 2");
  query.why = "seed";
  EXPECT_CONTAINS(show_config(query)["text"].get<std::string>(), "default    17");
  query.why = "sed";
  EXPECT_THROW(show_config(query), Error);
}

TEST_F(RecipeTest, TheSchemaHasHelpForEveryKey) {
  const Json rows = show_config({})["rows"];
  EXPECT_GT(rows.size(), 30u);
  for (const Json& row : rows) EXPECT_FALSE(row["help"].get<std::string>().empty()) << row["path"];
}

}  // namespace
}  // namespace tycho
