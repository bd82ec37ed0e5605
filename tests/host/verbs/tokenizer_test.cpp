// Tokenizers on the command line.
#include "tests/host/shell.h"

namespace tycho {
namespace {

const std::string kStyles = TYCHO_SOURCE_DIR "/tests/golden/tokenizer_styles/";

using TokenizerVerbTest = ShellTest;

TEST_F(TokenizerVerbTest, EncodesAndDecodesWithBothKindsOfFiles) {
  for (const std::string file : {"llama2.json", "llama2.model", "qwen2.json"}) {
    const std::string path = kStyles + file;
    const Outcome back =
        here("tycho tokenizer encode " + path + " 'the shard: 3 é' | tycho tokenizer decode " + path);
    EXPECT_EQ(back.code, 0) << back.output;
    EXPECT_EQ(back.output, "the shard: 3 é\n") << file;
  }
}

TEST_F(TokenizerVerbTest, ShowsWhatIsAddedAroundTexts) {
  const std::string path = kStyles + "llama2.json";
  EXPECT_EQ(here("tycho tokenizer encode " + path + " '' --added-tokens").output, "1\n");
  EXPECT_EQ(here("tycho tokenizer decode " + path + " 1 --skip-special").output, "\n");
  EXPECT_EQ(here("tycho tokenizer decode " + path + " 1").output, "<s>\n");
}

TEST_F(TokenizerVerbTest, TakesLinesOfJson) {
  const Outcome ids = here("printf '\"a\\\\nb\"\\n\"\"\\n' | tycho tokenizer encode " + kStyles +
                           "gpt2.json --lines > ids; "
                           "tycho tokenizer decode " +
                           kStyles + "gpt2.json --lines < ids");
  EXPECT_EQ(ids.output, "\"a\\nb\"\n\"\"\n");
  const Outcome wrong =
      here("printf '\"a\"\\n7\\n' | tycho tokenizer encode " + kStyles + "gpt2.json --lines");
  EXPECT_EQ(wrong.code, 2);
  EXPECT_CONTAINS(wrong.output, "line 2 of stdin");
}

TEST_F(TokenizerVerbTest, InspectsAFile) {
  const Outcome shown = here("tycho tokenizer inspect " + kStyles + "llama2.model");
  EXPECT_EQ(shown.code, 0) << shown.output;
  EXPECT_CONTAINS(shown.output, "BPE with byte fallback, tokenizer.model");
  EXPECT_CONTAINS(shown.output, "bos             \"<s>\" (1)");
  const Outcome json = here("tycho tokenizer inspect " + kStyles + "smollm.json --json");
  EXPECT_CONTAINS(json.output, "\"pre_tokenizers\":[\"single digits\",\"pattern of GPT-2\",\"bytes\"]");
}

TEST_F(TokenizerVerbTest, ComparesTwoFilesOnTexts) {
  const Outcome shown = here("printf 'there are 12 rates' > a.txt; tycho tokenizer compare " + kStyles +
                             "gpt2.json " + kStyles + "smollm.json a.txt");
  EXPECT_EQ(shown.code, 0) << shown.output;
  EXPECT_CONTAINS(shown.output, "files           differ");
  EXPECT_CONTAINS(shown.output, "documents       1, 1 with other ids");
  EXPECT_CONTAINS(shown.output, "first           document 1, of a.txt, token ");
  const Outcome same =
      here("tycho tokenizer compare " + kStyles + "gpt2.json " + kStyles + "gpt2.json a.txt");
  EXPECT_CONTAINS(same.output, "files           the same");
  EXPECT_CONTAINS(same.output, "documents       1, 0 with other ids");
}

TEST_F(TokenizerVerbTest, NamesWhatIsWrongWithAFile) {
  const Outcome cut =
      here("head -c 3000 " + kStyles + "llama2.model > cut.model; tycho tokenizer inspect cut.model");
  EXPECT_EQ(cut.code, 12);
  EXPECT_CONTAINS(cut.output, "cut.model: ");
  const Outcome unigram =
      here("printf '{\"model\": {\"type\": \"Unigram\"}}' > u.json; tycho tokenizer inspect u.json");
  EXPECT_EQ(unigram.code, 12);
  EXPECT_CONTAINS(unigram.output, "u.json: a model of type Unigram is not supported");
}

}  // namespace
}  // namespace tycho
