// Text from a model that was trained here on a sentence: generation, and tokenizers that fit or do not.
#include "trainer/eval/generate.h"

#include <fstream>

#include "tests/trainer/run_fixture.h"
#include "trainer/data/convert.h"

namespace tycho {
namespace {

constexpr const char* kSentence = "the quick brown fox jumps over the lazy dög and runs away. ";

class GenerateTest : public RunTest {
 protected:
  GenerateTest() {
    std::ofstream text(dir_ / "text.txt");
    for (int i = 0; i < 300; ++i) text << kSentence;
    text.close();
    write_tokenizer(dir_ / "tokenizer.json", 300);
    convert_text({.inputs = {dir_ / "text.txt"},
                  .tokenizer = dir_ / "tokenizer.json",
                  .out_dir = dir_ / "data",
                  .concat_tokens = 16});
    LlamaConfig model = config_.model.as<LlamaConfig>();
    model.vocab_size = 304;
    model.max_seq_len = 48;
    config_.model.value = model;
    config_.tokenizer = dir_ / "tokenizer.json";
    config_.max_duration = {80, DurationUnit::kBatch};
    config_.ckpt.every = {80, DurationUnit::kBatch};
  }
  void write_tokenizer(const std::string& path, int32_t vocab_size) {
    write_file_atomically(real_files(), path, train_bpe({dir_ / "text.txt"}, {.vocab_size = vocab_size}));
  }
  std::string generate(const std::string& prompt, const SamplingConfig& sampling, int64_t max_tokens,
                       uint64_t seed = 0) {
    Generator generator(CheckpointReader(find_checkpoint(run_dir())), "", at::kCPU);
    std::string text;
    generator.generate(
        prompt, sampling, max_tokens, seed, [&](const std::string& piece) { text += piece; }, stop_);
    return text;
  }
};

TEST_F(GenerateTest, WritesWhatItLearnt) {
  ASSERT_EQ(run(), 0);
  const std::string text = generate("the quick", {.temperature = 0}, 12);
  EXPECT_EQ(std::string("the quick" + text).substr(0, 30), std::string(kSentence).substr(0, 30));
  EXPECT_EQ(generate("the quick", {.temperature = 0}, 12), text);
  EXPECT_EQ(generate("fox", {.temperature = 2}, 20, 1), generate("fox", {.temperature = 2}, 20, 1));
  EXPECT_NE(generate("fox", {.temperature = 2}, 20, 1), generate("fox", {.temperature = 2}, 20, 2));
  EXPECT_EQ(generate("the quick", {.temperature = 3, .top_k = 1}, 12), text);
}

TEST_F(GenerateTest, EndsAtTheLongestSequenceAndRefusesPromptsThatFillIt) {
  ASSERT_EQ(run(), 0);
  EXPECT_FALSE(generate("the", {}, 100000).empty());
  std::string long_prompt;
  for (int i = 0; i < 20; ++i) long_prompt += kSentence;
  try {
    generate(long_prompt, {}, 5);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("48"), std::string::npos) << error.what();
  }
  EXPECT_THROW(generate("", {}, 5), Error);
}

TEST_F(GenerateTest, ATokenizerThatTheDataWasNotMadeWithIsRefused) {
  write_tokenizer(dir_ / "other.json", 290);
  config_.tokenizer = dir_ / "other.json";
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kUnusable) << error.what();
  EXPECT_NE(std::string(error.what()).find("other.json"), std::string::npos) << error.what();
}

TEST_F(GenerateTest, ATokenizerLargerThanTheModelIsRefused) {
  LlamaConfig model = config_.model.as<LlamaConfig>();
  model.vocab_size = 256;
  config_.model.value = model;
  const Error error = run_error();
  EXPECT_EQ(error.code(), ExitCode::kUnusable) << error.what();
  EXPECT_NE(std::string(error.what()).find("model.vocab_size"), std::string::npos) << error.what();
}

TEST_F(GenerateTest, ADamagedTokenizerInTheCheckpointIsNamedAndNotUsed) {
  ASSERT_EQ(run(), 0);
  const std::string path = find_checkpoint(run_dir()).path + "/tokenizer.json";
  std::string text = read_file(path);
  const size_t quick = text.find("quick");
  ASSERT_NE(quick, std::string::npos);
  text[quick] = 'Q';  // still a tokenizer, of another text
  std::ofstream(path, std::ios::trunc) << text;
  try {
    generate("the", {}, 5);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUnusable);
    EXPECT_NE(std::string(error.what()).find(path + " is damaged"), std::string::npos) << error.what();
  }
}

TEST_F(GenerateTest, ARunWithoutATokenizerAsksForOne) {
  config_.tokenizer.clear();
  ASSERT_EQ(run(), 0);
  try {
    generate("the", {}, 5);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUnusable);
    EXPECT_NE(std::string(error.what()).find("--tokenizer"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace tycho
