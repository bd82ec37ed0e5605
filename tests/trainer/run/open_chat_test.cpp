// Conversations with a model that was trained here: what it sees, what it reuses, where it ends.
#include "trainer/run/open_chat.h"

#include <filesystem>
#include <fstream>

#include "tests/trainer/run/run_fixture.h"
#include "trainer/base/file_ops.h"
#include "trainer/data/prepare/convert.h"
#include "trainer/eval/generate.h"
#include "trainer/huggingface/hf_export.h"

namespace tycho {
namespace {

constexpr const char* kLearntText = "the quick brown fox jumps over the lazy dög and runs away. ";

class OpenChatTest : public RunTest {
 protected:
  OpenChatTest() {
    std::ofstream text(dir_ / "text.txt");
    for (int i = 0; i < 300; ++i) text << kLearntText;
    text.close();
    write_file_atomically(real_files(), dir_ / "tokenizer.json",
                          train_bpe({{.path = dir_ / "text.txt"}}, {.vocab_size = 300}));
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
  std::unique_ptr<ChatSession> open(const std::string& chat_template = "") {
    return open_chat({.path = run_dir(), .tokenizer = "", .chat_template = chat_template}, at::kCPU);
  }
  /// The answer, whose pieces are its text.
  ChatAnswer say(ChatSession& session, const std::vector<ChatMessage>& messages, int64_t max_tokens = 8) {
    std::string pieces;
    ChatAnswer answer = session.answer(
        messages, {.temperature = 0, .max_tokens = max_tokens},
        [&](const std::string& piece) { pieces += piece; }, stop_);
    EXPECT_EQ(pieces, answer.text);
    return answer;
  }
  std::string generated(const std::string& prompt, int64_t max_tokens = 8) {
    Generator generator(TrainedSource(run_dir()), "", at::kCPU);
    return generator
        .generate(
            {generator.encode(prompt)}, {.sampling = {.temperature = 0}, .max_tokens = max_tokens},
            [](const std::string&) {}, stop_)
        ->text;
  }
};

TEST_F(OpenChatTest, AModelWithoutATemplateContinuesWhatIsWritten) {
  ASSERT_EQ(run(), 0);
  const auto session = open();
  EXPECT_TRUE(session->facts().is_plain);
  EXPECT_EQ(session->facts().longest, 48);
  const ChatAnswer first = say(*session, {{"user", "the quick"}});
  EXPECT_EQ(first.text, generated("the quick"));
  EXPECT_EQ(first.finish, "length");
  EXPECT_EQ(first.tokens, 8);
  const ChatAnswer second =
      say(*session, {{"user", "the quick"}, {"assistant", first.text}, {"user", "the lazy"}});
  EXPECT_EQ(second.text, generated("the quick" + first.text + "\nthe lazy"));
  EXPECT_GE(second.reused_tokens, first.prompt_tokens);
  EXPECT_LT(second.reused_tokens, second.prompt_tokens);
}

TEST_F(OpenChatTest, TakesTheTemplateThatTheModelHasAndTheOneThatIsGiven) {
  ASSERT_EQ(run(), 0);
  std::ofstream(dir_ / "own.jinja") << "{{ messages[-1]['content'] }} brown";
  const auto given = open(dir_ / "own.jinja");
  EXPECT_FALSE(given->facts().is_plain);
  EXPECT_EQ(say(*given, {{"user", "the quick"}}).text, generated("the quick brown"));
  // An export has the template beside its weights, as transformers writes it.
  const std::string folder = dir_ / "hf";
  export_hf(real_files(), CheckpointReader(find_checkpoint(run_dir())), folder, {});
  std::ofstream(folder + "/chat_template.jinja") << "{{ messages[-1]['content'] }} brown";
  const auto exported = open_chat({.path = folder, .tokenizer = "", .chat_template = ""}, at::kCPU);
  EXPECT_EQ(exported->facts().chat_template, "the model's own template");
  EXPECT_EQ(say(*exported, {{"user", "the quick"}}).text, generated("the quick brown"));
}

TEST_F(OpenChatTest, EndsWhereTheTemplateEndsAnAnswerAndAtTokensOfGenerationConfig) {
  ASSERT_EQ(run(), 0);
  const std::string whole = generated("the quick", 12);
  const size_t end = whole.find(" jumps");
  ASSERT_NE(end, std::string::npos) << whole;
  std::ofstream(dir_ / "own.jinja") << "{% for m in messages %}{{ m['content'] }}"
                                       "{% if m['role'] == 'assistant' %} jumps\n{% endif %}{% endfor %}";
  const ChatAnswer cut = say(*open(dir_ / "own.jinja"), {{"user", "the quick"}}, 12);
  EXPECT_EQ(cut.text, whole.substr(0, end + 1));
  EXPECT_EQ(cut.finish, "stop");

  const std::string folder = dir_ / "hf";
  export_hf(real_files(), CheckpointReader(find_checkpoint(run_dir())), folder, {});
  const auto tokenizer = load_tokenizer(dir_ / "tokenizer.json");
  const std::vector<int32_t> first = tokenizer->encode(whole);
  std::ofstream(folder + "/generation_config.json")
      << fmt::format("{{\"eos_token_id\": [0, {}]}}", first.at(1));
  const auto session = open_chat({.path = folder, .tokenizer = "", .chat_template = "none"}, at::kCPU);
  const ChatAnswer ended = say(*session, {{"user", "the quick"}}, 12);
  EXPECT_EQ(ended.finish, "eos");
  EXPECT_EQ(ended.text, tokenizer->token_bytes(first.at(0)));
}

TEST_F(OpenChatTest, DropsTheOldestTurnsAndKeepsTheSystemMessage) {
  ASSERT_EQ(run(), 0);
  const auto session = open();
  std::vector<ChatMessage> messages = {{"system", "fox"}};
  for (int i = 0; i < 10; ++i) {
    messages.push_back({"user", "the quick"});
    messages.push_back({"assistant", " brown fox"});
  }
  messages.push_back({"user", "the lazy"});
  const ChatAnswer answer = say(*session, messages, 6);
  EXPECT_GT(answer.dropped_messages, 0u);
  EXPECT_EQ(answer.dropped_messages % 2, 0u);
  EXPECT_LE(answer.prompt_tokens + 6, 48);
  std::string prompt = "fox\n";
  for (size_t i = 1 + answer.dropped_messages; i + 1 < messages.size(); i += 2)
    prompt += "the quick brown fox\n";
  EXPECT_EQ(answer.text, generated(prompt + "the lazy", 6));
  // One turn more would not have fitted.
  Generator generator(TrainedSource(run_dir()), "", at::kCPU);
  const auto tokenizer = load_tokenizer(dir_ / "tokenizer.json");
  EXPECT_GT(std::ssize(tokenizer->encode("fox\nthe quick brown fox\n" + prompt.substr(4) + "the lazy")) + 6,
            48);

  std::string long_text;
  for (int i = 0; i < 20; ++i) long_text += kLearntText;
  try {
    say(*session, {{"system", "fox"}, {"user", long_text}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("expected a message of at most 47 tokens"), std::string::npos);
  }
  EXPECT_EQ(say(*session, {{"user", "the quick"}}).text, generated("the quick"));
}

TEST_F(OpenChatTest, AStopEndsAnAnswerAndTheNextOneIsAsIfItHadNotCome) {
  ASSERT_EQ(run(), 0);
  const auto session = open();
  std::string pieces;
  const ChatAnswer answer = session->answer(
      {{"user", "the quick"}}, {.temperature = 0, .max_tokens = 30},
      [&](const std::string& piece) {
        pieces += piece;
        stop_ = 2;
      },
      stop_);
  EXPECT_EQ(answer.finish, "interrupted");
  EXPECT_EQ(answer.text, pieces);
  EXPECT_FALSE(pieces.empty());
  stop_ = 0;
  EXPECT_EQ(say(*session, {{"user", "the quick"}}).text, generated("the quick"));
}

// The folder and its answers are transformers' (tests/golden/chat_answers.py): template, tokenizer, ends of
// answers and weights of every conversation.
TEST_F(OpenChatTest, AnswersAsTransformersDoes) {
  const std::string folder = std::string(TYCHO_GOLDEN_DIR) + "/chat_answers";
  const Json expected = Json::parse(read_file(folder + "/expected.json"));
  for (const Json& conversation : expected.at("conversations")) {
    const auto session = open_chat({.path = folder, .tokenizer = "", .chat_template = ""}, at::kCPU);
    EXPECT_FALSE(session->facts().is_plain);
    int64_t known = 0;
    for (const Json& turn : conversation) {
      std::vector<ChatMessage> messages;
      for (const Json& message : turn.at("messages"))
        messages.push_back({message.at("role"), message.at("content")});
      const ChatAnswer answer = say(*session, messages, expected.at("max_new_tokens"));
      EXPECT_EQ(answer.text, turn.at("answer").get<std::string>());
      EXPECT_EQ(answer.finish, "eos");
      EXPECT_EQ(answer.prompt_tokens, std::ssize(turn.at("ids")));
      EXPECT_EQ(answer.reused_tokens, known) << turn.at("text");
      known = answer.prompt_tokens + answer.tokens;
    }
  }
}

TEST_F(OpenChatTest, RefusesAFolderWithoutATokenizer) {
  config_.tokenizer = "";
  ASSERT_EQ(run(), 0);
  try {
    open();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUnusable);
    EXPECT_NE(std::string(error.what()).find("--tokenizer PATH/tokenizer.json"), std::string::npos);
  }
}

}  // namespace
}  // namespace tycho
