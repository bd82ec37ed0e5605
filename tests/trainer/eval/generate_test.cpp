// Text from a model that was trained here on a sentence: generation, and tokenizers that fit or do not.
#include "trainer/eval/generate.h"

#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "tests/trainer/run/run_fixture.h"
#include "trainer/data/prepare/convert.h"

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
    write_file_atomically(real_files(), path,
                          train_bpe({{.path = dir_ / "text.txt"}}, {.vocab_size = vocab_size}));
  }
  Generated go_on(const std::string& prompt, const GenerateOptions& options, int64_t sample = 0) {
    Generator generator(TrainedSource(run_dir()), "", at::kCPU);
    std::string pieces;
    const std::optional<Generated> result = generator.generate(
        {generator.encode(prompt), sample}, options, [&](const std::string& piece) { pieces += piece; },
        stop_);
    EXPECT_EQ(result.value().text, pieces);
    return *result;
  }
  std::string generate(const std::string& prompt, const SamplingConfig& sampling, int64_t max_tokens,
                       uint64_t seed = 0) {
    return go_on(prompt, {.sampling = sampling, .max_tokens = max_tokens, .seed = seed}).text;
  }
};

TEST_F(GenerateTest, WritesWhatItLearnt) {
  ASSERT_EQ(run(), 0);
  const std::string text = generate("the quick", {.temperature = 0}, 12);
  CheckpointInfo old = find_checkpoint(run_dir());
  old.manifest["recipe"]["guard"]["max_skips"] = 3;  // breaks a rule, and is no part of the model
  Generator of_old(TrainedSource(old.path), "", at::kCPU);
  EXPECT_EQ(of_old.encode("the quick"),
            Generator(TrainedSource(run_dir()), "", at::kCPU).encode("the quick"));
  EXPECT_EQ(std::string("the quick" + text).substr(0, 30), std::string(kSentence).substr(0, 30));
  EXPECT_EQ(generate("the quick", {.temperature = 0}, 12), text);
  EXPECT_EQ(generate("fox", {.temperature = 2}, 20, 1), generate("fox", {.temperature = 2}, 20, 1));
  EXPECT_NE(generate("fox", {.temperature = 2}, 20, 1), generate("fox", {.temperature = 2}, 20, 2));
  EXPECT_EQ(generate("the quick", {.temperature = 3, .top_k = 1}, 12), text);
}

TEST_F(GenerateTest, SaysWhyATextEnded) {
  ASSERT_EQ(run(), 0);
  const SamplingConfig greedy = {.temperature = 0};
  const Generated whole = go_on("the quick", {.sampling = greedy, .max_tokens = 12});
  EXPECT_EQ(whole.finish, Finish::kLength);
  EXPECT_EQ(whole.tokens, 12);
  const Generated stopped =
      go_on("the quick", {.sampling = greedy, .max_tokens = 12, .stop = {"never", "fox jum"}});
  EXPECT_EQ(stopped.finish, Finish::kStop);
  EXPECT_EQ(stopped.text, whole.text.substr(0, whole.text.find("fox jum")));
  EXPECT_LT(stopped.tokens, 12);
  EXPECT_GT(stopped.tokens, 0);
}

TEST_F(GenerateTest, GivesTheProbabilitiesOfTheModelItself) {
  ASSERT_EQ(run(), 0);
  const Generated cold =
      go_on("the quick", {.sampling = {.temperature = 0}, .max_tokens = 12, .logprobs = true});
  ASSERT_EQ(cold.token_ids.size(), 12u);
  ASSERT_EQ(cold.logprobs.size(), 12u);
  for (const double logprob : cold.logprobs) EXPECT_GT(logprob, -1);  // learnt by heart
  // Temperature and penalties choose otherwise, and change nothing of what is said of the first token.
  const Generated top =
      go_on("the quick", {.sampling = {.temperature = 5, .top_k = 1, .repetition_penalty = 1.1},
                          .max_tokens = 1,
                          .logprobs = true});
  ASSERT_EQ(top.token_ids[0], cold.token_ids[0]);
  EXPECT_EQ(top.logprobs[0], cold.logprobs[0]);
  EXPECT_TRUE(go_on("the quick", {.max_tokens = 3}).logprobs.empty());
}

TEST_F(GenerateTest, SamplesDifferAndEachCanBeHadAgain) {
  ASSERT_EQ(run(), 0);
  const GenerateOptions options = {.sampling = {.temperature = 2}, .max_tokens = 20, .seed = 5};
  const std::string first = go_on("fox", options, 0).text, second = go_on("fox", options, 1).text;
  EXPECT_NE(first, second);
  EXPECT_EQ(go_on("fox", options, 1).text, second);
}

TEST_F(GenerateTest, APromptDoesNotSeeTheOnesBeforeIt) {
  ASSERT_EQ(run(), 0);
  Generator generator(TrainedSource(run_dir()), "", at::kCPU);
  const GenerateOptions options = {.sampling = {.temperature = 1}, .max_tokens = 10};
  const auto text = [&](const char* prompt) {
    return generator
        .generate(
            {generator.encode(prompt)}, options, [](const std::string&) {}, stop_)
        ->text;
  };
  const std::string alone = text("the lazy");
  text("fox");
  text("the quick brown fox jumps over");
  EXPECT_EQ(text("the lazy"), alone);
}

class Texts : public TextReceiver {
 public:
  void begin(size_t text) override { EXPECT_EQ(text, all.size()); }
  void piece(const std::string& text) override { pieces += text; }
  void end(const Generated& text) override {
    EXPECT_EQ(std::exchange(pieces, ""), text.text);
    all.push_back(text);
  }
  std::vector<Generated> all;
  std::string pieces;
};

// They end for different reasons and at different times, and there are more of them than rows.
TEST_F(GenerateTest, TextsOfSeveralPromptsAreThoseOfEachAlone) {
  ASSERT_EQ(run(), 0);
  Generator generator(TrainedSource(run_dir()), "", at::kCPU);
  const GenerateOptions options = {.sampling = {.temperature = 1.5, .repetition_penalty = 1.1},
                                   .max_tokens = 14,
                                   .stop = {"fox", "y d"},
                                   .seed = 3,
                                   .logprobs = true};
  std::vector<PromptToContinue> prompts;
  for (const char* prompt : {"the quick", "fox", "jumps over the lazy dog and runs", "d", "brown"})
    for (int64_t sample = 0; sample < 4; ++sample) prompts.push_back({generator.encode(prompt), sample});
  prompts.push_back({std::vector<int32_t>(47, 5)});  // room for one token
  Texts together;
  ASSERT_TRUE(generator.generate(prompts, options, together, stop_));
  ASSERT_EQ(together.all.size(), prompts.size());
  std::set<Finish> finishes;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const Generated alone = generator
                                .generate(
                                    prompts[i], options, [](const std::string&) {}, stop_)
                                .value();
    EXPECT_EQ(together.all[i].text, alone.text) << i;
    EXPECT_EQ(together.all[i].tokens, alone.tokens) << i;
    EXPECT_EQ(together.all[i].finish, alone.finish) << i;
    EXPECT_EQ(together.all[i].token_ids, alone.token_ids) << i;
    EXPECT_EQ(together.all[i].logprobs, alone.logprobs) << i;
    finishes.insert(alone.finish);
  }
  EXPECT_GE(finishes.size(), 2u);
  EXPECT_EQ(together.all.back().token_ids.size(), 1u);
}

TEST_F(GenerateTest, AStopSignalAmongSeveralTextsLeavesTheWholeOnesBeforeIt) {
  ASSERT_EQ(run(), 0);
  Generator generator(TrainedSource(run_dir()), "", at::kCPU);
  class Stopping : public Texts {
   public:
    explicit Stopping(std::atomic<int>& stop) : stop_(stop) {}
    void end(const Generated& text) override {
      Texts::end(text);
      if (all.size() == 2) stop_ = 15;
    }

   private:
    std::atomic<int>& stop_;
  } texts(stop_);
  const std::vector<PromptToContinue> prompts(12, {generator.encode("fox")});
  EXPECT_FALSE(generator.generate(prompts, {.max_tokens = 9}, texts, stop_));
  EXPECT_GE(texts.all.size(), 2u);
  EXPECT_LT(texts.all.size(), prompts.size());
}

TEST_F(GenerateTest, APenaltyChangesWhatRepeats) {
  ASSERT_EQ(run(), 0);
  EXPECT_NE(generate("the", {.temperature = 0, .repetition_penalty = 1000}, 30),
            generate("the", {.temperature = 0}, 30));
  EXPECT_EQ(generate("the", {.temperature = 0, .repetition_penalty = 1}, 30),
            generate("the", {.temperature = 0}, 30));
}

TEST_F(GenerateTest, ASpecialTokenEndsATextUnlessItIsIgnored) {
  LlamaConfig model = config_.model.as<LlamaConfig>();
  model.tied = false;
  config_.model.value = model;
  std::ofstream text(dir_ / "text.txt", std::ios::trunc);
  for (int i = 0; i < 300; ++i) text << "a<|endoftext|>";
  text.close();
  std::filesystem::remove_all(dir_ / "data");
  convert_text({.inputs = {dir_ / "text.txt"},
                .tokenizer = dir_ / "tokenizer.json",
                .out_dir = dir_ / "data",
                .concat_tokens = 16});
  ASSERT_EQ(run(), 0);
  const SamplingConfig greedy = {.temperature = 0};
  const Generated ended = go_on("a", {.sampling = greedy, .max_tokens = 6});
  EXPECT_EQ(ended.finish, Finish::kEos);
  EXPECT_EQ(ended.tokens, 0);
  EXPECT_EQ(ended.text, "");
  const Generated on = go_on("a", {.sampling = greedy, .max_tokens = 6, .ignore_eos = true});
  EXPECT_EQ(on.finish, Finish::kLength);
  EXPECT_EQ(on.tokens, 6);
  EXPECT_EQ(on.text, "aaa");
}

TEST_F(GenerateTest, AStopSignalEndsItWithoutAResult) {
  ASSERT_EQ(run(), 0);
  Generator generator(TrainedSource(run_dir()), "", at::kCPU);
  stop_ = 2;
  EXPECT_FALSE(generator.generate(
      {generator.encode("the")}, {}, [](const std::string&) {}, stop_));
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
