// Models of Hugging Face on the command line, and in recipes.
#include "tests/host/shell.h"

namespace tycho {
namespace {

const std::string kLlama = TYCHO_SOURCE_DIR "/tests/golden/hf/llama";

using ConvertTest = ShellTest;

TEST_F(ConvertTest, GoesInAndOutAndSaysWhatItDid) {
  const Outcome in = here("tycho convert " + kLlama + "/ runs/llama");
  EXPECT_EQ(in.code, 0) << in.output;
  EXPECT_CONTAINS(in.output, "llama, 32.4 K parameters, F32 in 1 file");
  EXPECT_CONTAINS(in.output, "next: tycho ckpt info runs/llama  # no tokenizer.json");
  EXPECT_EQ(here("tycho ckpt verify runs/llama").code, 0);
  const Outcome out = here("tycho convert runs/llama out --shard-size 50KB");
  EXPECT_EQ(out.code, 0) << out.output;
  EXPECT_CONTAINS(out.output, "LlamaForCausalLM, fp32, 130 KB in 3 files");
  EXPECT_CONTAINS(here("tycho convert out again").output, "F32 in 3 files");
}

TEST_F(ConvertTest, AnAverageThatIsNotThereIsAnError) {
  ASSERT_EQ(here("tycho convert " + kLlama + " runs/llama").code, 0);
  const Outcome none = here("tycho convert runs/llama out --ema");
  EXPECT_EQ(none.code, 12);
  EXPECT_CONTAINS(none.output,
                  " keeps no average of the weights: expected a checkpoint of a run with ema.half_life or "
                  "ema.decay, after ema.start; without --ema its trained weights are read");
  const Outcome folder = here("tycho convert " + kLlama + " out --ema");
  EXPECT_EQ(folder.code, 2);
  EXPECT_CONTAINS(folder.output, "[tycho convert] --ema is about a checkpoint of Tycho's");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

TEST_F(ConvertTest, ReadsTheTokenizerThatItKeeps) {
  const std::string with = "cp -r " + kLlama + " with && ";
  const Outcome broken =
      here(with + "printf '{\"model\": ' > with/tokenizer.json && tycho convert with runs/a");
  EXPECT_EQ(broken.code, 12);
  EXPECT_CONTAINS(broken.output,
                  "[convert] with/tokenizer.json is not valid JSON: download the folder again");
  const Outcome foreign = here(
      "printf '{\"model\": {\"type\": \"Unigram\"}}' > with/tokenizer.json && tycho convert with runs/a");
  EXPECT_EQ(foreign.code, 0) << foreign.output;
  EXPECT_CONTAINS(foreign.output, "note: tokenizer.json is kept, but Tycho cannot use it: [tokenizer]");
  EXPECT_CONTAINS(foreign.output, "# no tokenizer that Tycho supports: it cannot generate text");
}

TEST_F(ConvertTest, SaysWhatCannotBeConverted) {
  std::filesystem::create_directory(folder_ / "empty");
  const Outcome neither = here("tycho convert empty out");
  EXPECT_EQ(neither.code, 12);
  EXPECT_CONTAINS(neither.output, "neither a Hugging Face folder");
  EXPECT_EQ(here("tycho convert nowhere out").code, 12);
  EXPECT_EQ(here("tycho convert " + kLlama).code, 2);
  EXPECT_EQ(here("tycho convert " + kLlama + " empty && tycho convert empty out --dtype int4").code, 2);
  EXPECT_EQ(here("tycho convert empty out --shard-size much").code, 2);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

TEST_F(ConvertTest, ARecipeTakesTheModelOfAFolder) {
  write(whole("r.model = t.model.hf { path = \"" + kLlama +
              "\", max_seq_len = 64 }\nr.seq_len = r.model.max_seq_len / 2\n"));
  EXPECT_EQ(here("tycho check x.lua model.rope_theta=10000").code, 0) << here("tycho check x.lua").output;
  const Outcome shown = here("tycho config x.lua --changed");
  EXPECT_CONTAINS(shown.output, "model.weights");
  EXPECT_CONTAINS(shown.output, "32  -- x.lua:8");
  EXPECT_CONTAINS(shown.output, "\"llama3\"");
}

TEST_F(ConvertTest, ARecipeTakesTheTokenizerBesideTheWeightsUnlessItNamesOne) {
  std::filesystem::copy(kLlama, folder_ / "hf", std::filesystem::copy_options::recursive);
  write(whole("r.model = t.model.hf { path = \"hf\", vocab_size = 512 }\nr.seq_len = 16\n"));
  const auto tokenizer_of = [&](const std::string& arguments) {
    const Outcome shown = here("tycho config x.lua tokenizer --json " + arguments);
    EXPECT_EQ(shown.code, 0) << shown.output;
    return shown.output;
  };
  EXPECT_EQ(tokenizer_of("").find("hf/tokenizer.json"), std::string::npos) << "there is none yet";
  ASSERT_EQ(here("echo some words and words > words.txt && tycho tokenizer train words.txt --vocab-size 257 "
                 "--out hf/tokenizer.json")
                .code,
            0);
  EXPECT_CONTAINS(tokenizer_of(""), "hf/tokenizer.json");
  write("{}", "mine.json");
  EXPECT_CONTAINS(tokenizer_of("tokenizer=mine.json"), "mine.json");
  write("{}", "hf/tokenizer.json");
  EXPECT_EQ(tokenizer_of("").find("hf/tokenizer.json"), std::string::npos) << "one that cannot be used";
}

TEST_F(ConvertTest, ARecipeMayTakeTheArchitectureAlone) {
  write(whole("r.model = t.model.hf { path = \"" + kLlama + "\", pretrained = false }\nr.seq_len = 16\n"));
  const Outcome shown = here("tycho config x.lua --changed");
  EXPECT_EQ(shown.code, 0) << shown.output;
  EXPECT_CONTAINS(shown.output, "model.ffn_width");
  EXPECT_EQ(shown.output.find("model.weights"), std::string::npos) << shown.output;
}

/// The config.json beside it has ids of another tokenizer.
TEST_F(ConvertTest, AnArchitectureAloneIsExportedWithTheIdsOfTheRunsTokenizer) {
  std::filesystem::copy(kLlama, folder_ / "hf");
  const auto write_ids = here(
      "seq 2000 > words.txt && tycho tokenizer train words.txt --vocab-size 257 --out hf/tokenizer.json && "
      "tycho data convert words.txt --out data --tokenizer hf/tokenizer.json --concat-tokens 16");
  ASSERT_EQ(write_ids.code, 0) << write_ids.output;
  write("{}", "hf/tokenizer_config.json");
  write(
      whole("r.model = t.model.hf { path = \"hf\", vocab_size = 257, pretrained = false }\nr.tokenizer = "
            "\"hf/tokenizer.json\"\nr.seq_len = 16\n"
            "r.max_duration = \"1ba\"\nr.global_batch = \"4sp\"\n"));
  const Outcome ran = here("tycho run x.lua run_dir=run device=cpu && tycho convert run out");
  ASSERT_EQ(ran.code, 0) << ran.output;
  for (const char* file : {"config.json", "generation_config.json"}) {
    const Outcome shown = here(std::string("cat out/") + file);
    EXPECT_CONTAINS(shown.output, "\"eos_token_id\": 0");
    EXPECT_CONTAINS(shown.output, "\"bos_token_id\": 0");
  }
}

TEST_F(ConvertTest, ARecipeLearnsWhatIsWrongWithAFolder) {
  write(whole("r.model = t.model.hf { path = \"nowhere\" }\n"));
  const Outcome absent = here("tycho check x.lua");
  EXPECT_EQ(absent.code, 10);
  EXPECT_CONTAINS(absent.output, "nowhere is not a Hugging Face model folder: it has no config.json");
  std::filesystem::create_directory(folder_ / "other");
  write("{\"model_type\": \"mamba\"}", "other/config.json");
  write(whole("r.model = t.model.hf { path = \"other\" }\n"));
  EXPECT_CONTAINS(here("tycho check x.lua").output, "model_type is \"mamba\"");
  write(whole("r.model = t.model.hf \"other\"\n"));
  EXPECT_CONTAINS(here("tycho check x.lua").output, "expects the folder of a model");
}

}  // namespace
}  // namespace tycho
