// Files of other systems at the command line: imported, and used as they are.
#include "tests/host/shell.h"

namespace tycho {
namespace {

class ImportTest : public ShellTest {
 protected:
  void SetUp() override {
    ShellTest::SetUp();
    std::filesystem::copy(TYCHO_SOURCE_DIR "/tests/golden/import", folder_,
                          std::filesystem::copy_options::recursive);
    // The cache has the tokenizers that the files name.
    ::setenv("HF_HOME", (folder_ / "home").c_str(), 1);
    for (const char* name : {"some--tokenizer", "EleutherAI--gpt-neox-20b", "gpt2"})
      ASSERT_EQ(here(std::string("d=home/hub/models--") + name +
                     "; c=0123456789abcdef0123456789abcdef01234567; mkdir -p "
                     "$d/refs $d/snapshots/$c && printf $c > $d/refs/main && cp " TYCHO_SOURCE_DIR
                     "/tests/golden/tokenizer/whole.json $d/snapshots/$c/tokenizer.json")
                    .code,
                0);
  }
  void TearDown() override {
    ::unsetenv("HF_HOME");
    ShellTest::TearDown();
  }
};

TEST_F(ImportTest, GoldenRecipesPass) {
  for (const char* name : {"foundry.yaml", "titan.toml", "nanotron.yaml"}) {
    const Outcome checked = here(std::string("tycho check ") + name + ".lua");
    EXPECT_EQ(checked.code, 0) << name << "\n" << checked.output;
    const Outcome direct = here(std::string("tycho check ") + name);
    EXPECT_EQ(direct.code, 0) << name << "\n" << direct.output;
    EXPECT_EQ(here(std::string("tycho diff ") + name + " " + name + ".lua 2>&-").code, 0);
  }
}

/// One of each kind that the other systems publish, and of what they leave to their defaults.
TEST_F(ImportTest, RecipesOfAllSamplesPass) {
  int num_samples = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "samples")) {
    const std::string file = "samples/" + entry.path().filename().string();
    const Outcome written =
        here("tycho import " + file + " -o made.lua && tycho check made.lua; s=$?; rm -f made.lua; exit $s");
    EXPECT_EQ(written.code, 0) << file << "\n" << written.output;
    if (!file.ends_with(".json")) {
      const Outcome direct = here("tycho check " + file);
      EXPECT_EQ(direct.code, 0) << file << "\n" << direct.output;
    }
    ++num_samples;
  }
  EXPECT_GE(num_samples, 13);
}

TEST_F(ImportTest, TellsHowAPythonConfigBecomesOneOfText) {
  const Outcome made = here("touch config_registry.py; tycho import config_registry.py");
  EXPECT_EQ(made.code, 2);
  EXPECT_CONTAINS(made.output, "start it once with --debug.save_config_file=config.json");
  EXPECT_EQ(here("tycho check config_registry.py").output, made.output);
  const Outcome saved = here("tycho run samples/titan_saved.json");
  EXPECT_EQ(saved.code, 2);
  EXPECT_CONTAINS(saved.output, "`tycho import samples/titan_saved.json -o NAME.lua` makes one");
}

TEST_F(ImportTest, WritesARecipeOnce) {
  EXPECT_CONTAINS(here("tycho import foundry.yaml -o new.lua").output,
                  "wrote new.lua; next: tycho check new.lua");
  EXPECT_EQ(here("cmp new.lua foundry.yaml.lua").code, 0);
  const Outcome again = here("tycho import foundry.yaml -o new.lua");
  EXPECT_EQ(again.code, 2);
  EXPECT_CONTAINS(again.output, "is not overwritten");
  EXPECT_CONTAINS(here("tycho import foundry.yaml variables.length=64 2>&-").output, "local length = 64");
  EXPECT_EQ(here("tycho import foundry.yaml ckpt.keep=2").code, 2);
  EXPECT_EQ(here("tycho import absent.yaml").code, 2);
}

TEST_F(ImportTest, TakesOverridesOfBothSystems) {
  const std::string updates =
      "save_folder=/data/checkpoints save_interval=10ba save_num_checkpoints_to_keep=5 "
      "fsdp_config.state_dict_type=sharded max_duration=100ba variables.copy=/data/my-copy-c4 "
      "train_loader.dataset.split=train_small --set 'yamlUpdates.eval_loader\\.dataset\\.split=val_small' "
      "optimizer.lr*=0.5";
  const Outcome shown = here("tycho config foundry.yaml --json " + updates + " 2>&-");
  ASSERT_EQ(shown.code, 0) << shown.output;
  const Outcome checked = here("tycho check foundry.yaml --json " + updates + " 2>&-");
  for (const char* part :
       {"\"local_dir\": \"/data/my-copy-c4\"", "\"split\": \"train_small\"", "\"split\": \"val_small\"",
        "\"max_duration\": \"100ba\"", "\"run_dir\": \"/data/checkpoints\"", "\"keep\": 5", "\"lr\": 0.0003",
        "\"foundry.yaml\""})
    EXPECT_CONTAINS(checked.output, part);
}

TEST_F(ImportTest, ReportsProblemsOfTheFileAndOfTheRecipe) {
  const Outcome unknown =
      here("sed 's/^precision.*/precison: x/' foundry.yaml > bad.yaml; tycho plan bad.yaml");
  EXPECT_EQ(unknown.code, 10);
  EXPECT_CONTAINS(unknown.output, "did you mean \"precision\"?");
  const Outcome wrong = here("tycho check foundry.yaml model.n_heads=5");
  EXPECT_EQ(wrong.code, 10);
  EXPECT_CONTAINS(wrong.output, "argument 2  model.heads: width = ");
  EXPECT_CONTAINS(wrong.output,
                  "`tycho import foundry.yaml` writes its recipe, `tycho config foundry.yaml` lists");
  EXPECT_EQ(wrong.output.find("foundry.yaml.lua"), std::string::npos) << wrong.output;
  const Outcome written =
      here("sed 's/^\\( *\\)n_heads: .*/\\1n_heads: 5/' foundry.yaml > bad.yaml; tycho check bad.yaml");
  EXPECT_EQ(written.code, 10);
  EXPECT_CONTAINS(written.output, "bad.yaml:");
  EXPECT_CONTAINS(written.output, ": model.heads: width = ");
  EXPECT_CONTAINS(written.output, "n_heads: 5\n");
  EXPECT_CONTAINS(here("tycho repl bad.yaml -e 1").output, "bad.yaml:");
  EXPECT_EQ(here("tycho repl bad.yaml -e 1").output.find("bad.yaml.lua"), std::string::npos);
}

TEST_F(ImportTest, PlacesAreTheFilesOwnLines) {
  for (const char* verb :
       {"config foundry.yaml", "config foundry.yaml --json", "config titan.toml", "config nanotron.yaml",
        "config foundry.yaml --why seq_len", "repl foundry.yaml -e 'r.optimizer'"}) {
    const Outcome shown = here(std::string("tycho ") + verb);
    EXPECT_EQ(shown.code, 0) << verb << shown.output;
    for (const char* made : {"yaml.lua:", "toml.lua:", ":0"})
      EXPECT_EQ(shown.output.find(made), std::string::npos) << verb << "\n" << shown.output;
  }
  EXPECT_CONTAINS(here("tycho config foundry.yaml --why seq_len").output,
                  "recipe     128             foundry.yaml:9\n");
  const Outcome heads = here("tycho config foundry.yaml model.heads");
  EXPECT_CONTAINS(heads.output, "-- foundry.yaml:17\n");
  EXPECT_CONTAINS(here("tycho config foundry.yaml train_data.compat").output, "-- foundry.yaml\n");
  EXPECT_CONTAINS(here("tycho config foundry.yaml variables.seed=5 run_name").output, "-- foundry.yaml:10\n");
}

}  // namespace
}  // namespace tycho
