// Overrides as shells pass them, where values come from, and the identity of a run.
#include "tests/host/shell.h"

namespace tycho {
namespace {

using ConfigTest = ShellTest;

TEST_F(ConfigTest, ShellsPassEveryOperator) {
  write(whole("r.seq_len = 512\n"));
  const std::string quoted =
      "tycho config x.lua 'optimizer.lr*=0.5' 'seq_len+=256' 'optimizer.betas=[0.9, 0.98]' 'run_name=it is "
      "$HOME' 'scheduler=cosine{alpha_f=0.1}' 'seed:=r.seq_len + 1' '~clip.norm' --changed";
  for (const char* program : {"sh", "bash", "zsh"}) {
    if (shell(std::string("command -v ") + program).code != 0) continue;
    const Outcome shown = here(quoted, program);
    EXPECT_EQ(shown.code, 0) << shown.output;
    for (const char* value : {"0.0005  -- argument 2", "768  -- argument 3", "{0.9, 0.98}  -- argument 4",
                              "\"it is $HOME\"  -- argument 5", "0.1  -- argument 6", "769  -- argument 7"}) {
      EXPECT_CONTAINS(shown.output, value);
    }
  }
}

TEST_F(ConfigTest, BashTakesWhatNeedsNoQuotesInZshToo) {
  write(whole());
  for (const char* one : {"optimizer.lr=1e-4", "seq_len+=512", "optimizer.betas.2=0.98", "seed:=2^4",
                          "--set seed=3", "--unset clip.norm", "--set=seed=3", "--unset=clip.norm"}) {
    EXPECT_EQ(here(std::string("tycho check x.lua ") + one, "bash").code, 0) << one;
  }
  EXPECT_EQ(here("tycho check x.lua --unset").code, 2);
  EXPECT_CONTAINS(here("tycho check x.lua seed=1 --unset sede").output, "argument 4  ~sede: unknown key");
}

TEST_F(ConfigTest, ThePageOfKeysIsWhatTheSchemaSays) {
  const Outcome page = shell("tycho config --markdown | diff - " TYCHO_SOURCE_DIR "/docs/keys.md");
  EXPECT_EQ(page.output, "") << "docs/keys.md is stale: tycho config --markdown > docs/keys.md";
  EXPECT_EQ(page.code, 0);
  EXPECT_EQ(here("tycho config absent.lua --markdown").code, 10);
}

TEST_F(ConfigTest, WhyShowsTheWholeHistoryNewestLast) {
  write(whole("r.seed = 3\nr.seed = 4\n"));
  EXPECT_EQ(here("tycho config x.lua seed=5 'seed*=2' --why seed").output,
            "default    17\n"
            "argument   5               argument 2  seed=5\n"
            "recipe     3               x.lua:7  (hidden by an argument)\n"
            "recipe     4               x.lua:8  (hidden by an argument)\n"
            "argument   10              argument 3  seed*=2\n");
  EXPECT_CONTAINS(here("tycho config x.lua 'seed*=2' --why seed --json").output, "\"text\": \"seed*=2\"");
}

TEST_F(ConfigTest, ChangedLeavesOutWhatIsAsItWouldBe) {
  write(whole("r.seed = 17\nr.seq_len = 512\n"));
  const Outcome shown = here("tycho config x.lua --changed");
  EXPECT_EQ(shown.output.find("seed "), std::string::npos);
  EXPECT_CONTAINS(shown.output, "seq_len");
}

TEST_F(ConfigTest, HashNamesTheRunAndEverySource) {
  write(whole(), "base.lua");
  write("local r = require \"base\":extend \"mine\"\nr.seq_len = 512\nreturn r\n");
  write("seed=3\n", "over.txt");
  const Outcome hash = here("tycho config x.lua @over.txt --hash");
  EXPECT_CONTAINS(hash.output, "  mine\n");
  for (const char* file : {"base.lua", "over.txt", "x.lua"})
    EXPECT_CONTAINS(hash.output, std::string("  ") + file + "\n");
  EXPECT_CONTAINS(here("tycho config x.lua --hash --json").output, "\"sources\"");
  EXPECT_EQ(here("tycho config --hash").code, 2);
}

TEST_F(ConfigTest, TheOrderOfKeysDoesNotChangeTheHash) {
  const auto hash_of = [&](const std::string& keys) {
    write(whole("r.model = t.model.llama { " + keys +
                " }\nlocal order = {}\n"
                "for key in pairs { a = 1, b = 2, c = 3, d = 4 } do order[#order + 1] = key end\n"
                "r.run_name, r.seed = table.concat(order), #order\n"));
    return here("tycho config x.lua --hash").output.substr(0, 32);
  };
  const std::string first = hash_of("width = 64, heads = 4, layers = 2, ffn_width = 128");
  EXPECT_EQ(hash_of("ffn_width = 128, layers = 2, heads = 4, width = 64"), first);
  EXPECT_EQ(hash_of("layers = 2, width = 64, ffn_width = 128, heads = 4"), first);
  EXPECT_NE(hash_of("layers = 3, width = 64, ffn_width = 128, heads = 4"), first);
}

TEST_F(ConfigTest, AChainOfFiveFilesEndsWithTheLastValue) {
  write(whole(), "base0.lua");
  for (int i = 1; i <= 4; ++i) {
    write("local r = require \"base" + std::to_string(i - 1) +
              "\":extend \"base\"\nr.seed = " + std::to_string(i) + "\nreturn r\n",
          "base" + std::to_string(i) + ".lua");
  }
  write("local r = require \"base4\":extend \"x\"\nr.model.width = 128\nreturn r\n");
  const Outcome why = here("tycho config x.lua --why seed");
  EXPECT_EQ(why.code, 0) << why.output;
  EXPECT_CONTAINS(why.output, "base4.lua:2");
  EXPECT_CONTAINS(here("tycho config x.lua --changed").output, "model.width");
}

TEST_F(ConfigTest, TheRecipeOfARunSaysWhatWasCommanded) {
  const std::string recipe = whole();
  std::filesystem::create_directories(folder_ / "run/attempt-2");
  write(recipe, "run/recipe.lua");
  write(recipe, "run/attempt-2/recipe.lua");
  write(
      "{\"kind\":\"command\",\"facts\":{\"step\":20,\"command\":{\"name\":\"set_lr\",\"arguments\":"
      "{\"lr\":0.0003},\"by\":\"repl\"}}}\n"
      "{\"kind\":\"command\",\"facts\":{\"step\":21,\"command\":{\"name\":\"scale_lr\",\"arguments\":"
      "{\"factor\":0.5,\"for_next\":\"200ba\"},\"by\":\"spike\"}}}\n"
      "{\"kind\":\"command\",\"facts\":{\"step\":30,\"command\":{\"name\":\"set_clip\",\"arguments\":"
      "{\"norm\":null},\"by\":\"ann\"}}}\n",
      "run/events.jsonl");
  for (const char* file : {"run/recipe.lua", "run/attempt-2/recipe.lua"}) {
    const Outcome lr = here(std::string("tycho config ") + file + " --why optimizer.lr");
    EXPECT_CONTAINS(lr.output,
                    "command    0.0003          repl, step 20 (pin)\n"
                    "command    x 0.5           spike, step 21 (for 200ba)\n");
    EXPECT_CONTAINS(here(std::string("tycho config ") + file + " --why clip.norm").output,
                    "command    as before       ann, step 30 (released)\n");
  }
  EXPECT_CONTAINS(here("tycho config run/recipe.lua --why optimizer.lr --json").output,
                  "\"by\": \"command\"");
  write(recipe);
  EXPECT_EQ(here("tycho config x.lua --why optimizer.lr").output.find("command"), std::string::npos);
}

}  // namespace
}  // namespace tycho
