// Conversations as text: where templates come from, and how what they write is cut into prompts and
// responses.
#include "trainer/data/chat/chat_template.h"

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

const ChatRow kTalk = {.messages = {{"system", " s\n"},
                                    {"user", "u"},
                                    {"assistant", "a"},
                                    {"user", "v"},
                                    {"assistant", "\u3000b \x1c"}},
                       .place = "x.jsonl:7"};

class ChatTemplateTest : public ::testing::Test {
 protected:
  std::vector<ChatTurn> turns(const std::string& name, const ChatRow& row = kTalk) {
    config_.chat_template = name;
    const auto tokenizer = load_tokenizer(tokenizer_);
    return ChatTemplate(config_, chat_template_text(config_, tokenizer_), *tokenizer).turns(row);
  }
  /// A template in a file of its own.
  std::vector<ChatTurn> turns_of(const std::string& text) {
    write_text(temp_ / "own.jinja", text);
    return turns(temp_ / "own.jinja");
  }
  /// A tokenizer with a tokenizer_config.json.
  void write_tokenizer(const Json& config) {
    tokenizer_ = temp_ / "tokenizer.json";
    write_text(tokenizer_, read_file(golden("tokenizer/lines.json")));
    write_text(temp_ / "tokenizer_config.json", config.dump());
  }

  TempDir temp_;
  ChatConfig config_;
  std::string tokenizer_ = golden("tokenizer/lines.json");
};

TEST_F(ChatTemplateTest, WritesChatml) {
  const std::vector<ChatTurn> made = turns("chatml");
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].prompt,
            "<|im_start|>system\n s\n<|im_end|>\n<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(made[0].response, "a<|im_end|>\n");
  EXPECT_EQ(made[1].prompt, "<|im_start|>user\nv<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(made[1].response, "\u3000b \x1c<|im_end|>\n");
}

TEST_F(ChatTemplateTest, APromptIsTheBeginningOfTheNextTurn) {
  const auto tokenizer = load_tokenizer(tokenizer_);
  for (const char* name : {"chatml", "llama3"}) {
    config_.chat_template = name;
    const ChatTemplate made(config_, chat_template_text(config_, tokenizer_), *tokenizer);
    const std::vector<ChatTurn> cut = made.turns(kTalk);
    EXPECT_EQ(made.prompt({kTalk.messages.begin(), kTalk.messages.begin() + 2}), cut[0].prompt);
    EXPECT_EQ(made.prompt({kTalk.messages.begin(), kTalk.messages.begin() + 4}),
              cut[0].prompt + cut[0].response + cut[1].prompt);
    EXPECT_EQ(made.end_of_answer(), std::string(name) == "chatml" ? "<|im_end|>" : "<|eot_id|>");
  }
  config_.chat_template = kPlainTemplate;
  const ChatTemplate plain(config_, chat_template_text(config_, tokenizer_), *tokenizer);
  EXPECT_EQ(plain.prompt({{"system", "s"}, {"user", "Once"}, {"assistant", " upon"}, {"user", "a"}}),
            "s\nOnce upon\na");
  EXPECT_EQ(plain.end_of_answer(), "");
}

TEST_F(ChatTemplateTest, WritesLlama3WithTrimmedContents) {
  const std::vector<ChatTurn> made = turns("llama3");
  ASSERT_EQ(made.size(), 2u);
  EXPECT_EQ(made[0].prompt,
            "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\ns<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nu<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(made[1].response, "b<|eot_id|>");
}

TEST_F(ChatTemplateTest, TheTokenizersOwnIsReadFromEitherFile) {
  const std::string own =
      "{% for m in messages %}{{ bos_token + m.role + ':' + m.content + eos_token }}{% endfor %}"
      "{% if add_generation_prompt %}{{ bos_token }}assistant:{% endif %}";
  write_tokenizer({{"bos_token", "<|endoftext|>"},
                   {"eos_token", {{"content", "<|endoftext|>"}}},
                   {"chat_template", own}});
  const std::vector<ChatTurn> made = turns("tokenizer");
  EXPECT_EQ(made[1].prompt, "<|endoftext|>user:v<|endoftext|><|endoftext|>assistant:");
  EXPECT_EQ(made[1].response, "\u3000b \x1c<|endoftext|>");
  // Several with names: the default one.
  write_tokenizer({{"chat_template",
                    {{{"name", "tools"}, {"template", "x"}}, {{"name", "default"}, {"template", own}}}}});
  EXPECT_EQ(chat_template_text(config_, tokenizer_), own);
  // transformers writes the file, and reads it first.
  write_text(temp_ / "chat_template.jinja", "file");
  EXPECT_EQ(chat_template_text(config_, tokenizer_), "file");
}

TEST_F(ChatTemplateTest, SaysThatATokenizerHasNone) {
  const auto expect_none = [&] {
    expect_error(ExitCode::kUnusable,
                 {"beside " + tokenizer_, "chat_template.jinja", "template = \"chatml\""},
                 [&] { turns("tokenizer"); });
  };
  expect_none();
  for (const Json& config :
       {Json::object(), Json{{"chat_template", 3}}, Json{{"chat_template", Json::array({3})}}}) {
    write_tokenizer(config);
    expect_none();
  }
}

TEST_F(ChatTemplateTest, TodayIsTheDayOfTheRecipe) {
  const std::string dated =
      "{% if date_string is not defined %}{% set date_string = 'none' %}{% endif %}"
      "{{ date_string }}{% for m in messages %} {{ m.content }}{% endfor %}";
  EXPECT_EQ(turns_of(dated)[0].prompt, "none  s\n u");
  config_.template_date = "2026-03-09";
  EXPECT_EQ(turns_of(dated)[0].prompt, "09 Mar 2026  s\n u");
  EXPECT_EQ(
      turns_of("{{ strftime_now('%Y-%m-%d') }}{% for m in messages %}{{ m.content }}{% endfor %}")[0].prompt,
      "2026-03-09 s\nu");
}

TEST_F(ChatTemplateTest, ErrorsNameTheRowAndTheTemplate) {
  expect_error(
      ExitCode::kUnusable,
      {"[x.jsonl:7] [" + (temp_ / "own.jinja") + ":2] the template refuses the conversation: no system"},
      [&] { turns_of("\n{{ raise_exception('no system') }}"); });
  // Earlier responses lose their text when more follows, as reasoning does.
  expect_error(ExitCode::kUnusable,
               {"[x.jsonl:7] the template writes what comes before message 5 in another way"}, [&] {
                 turns_of(
                     "{% for m in messages %}{% if m.role != 'assistant' or loop.last %}{{ m.content }}{% "
                     "endif %}{% endfor %}");
               });
  expect_error(ExitCode::kUnusable, {"own.jinja:1] the statement block is not supported"},
               [&] { turns_of("{% block x %}{% endblock %}"); });
}

TEST_F(ChatTemplateTest, NamesTheTokensThatATokenizerLacks) {
  const auto small = load_tokenizer(golden("tokenizer/lines.json")),
             llama = load_tokenizer(golden("chat/tokenizer.json"));
  config_.chat_template = "chatml";
  EXPECT_EQ(missing_template_tokens(config_, *small),
            (std::vector<std::string>{"<|im_start|>", "<|im_end|>"}));
  config_.chat_template = "llama3";
  EXPECT_EQ(missing_template_tokens(config_, *small).size(), 4u);
  EXPECT_TRUE(missing_template_tokens(config_, *llama).empty());
}

}  // namespace
}  // namespace tycho
