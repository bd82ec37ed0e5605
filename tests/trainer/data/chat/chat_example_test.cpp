// Token ids and labels against LLM Foundry's own functions.
#include "trainer/data/chat/chat_example.h"

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/tokenizer/special_tokens.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;

ChatConfig config_of(const Json& wanted) {
  ChatConfig config;
  const auto is = [&](const char* key, const char* value) { return wanted.at(key) == value; };
  config.chat_template = wanted.at("template");
  if (is("target_prompts", "all")) config.target_prompts = TargetPrompts::kAll;
  if (is("target_responses", "all")) config.target_responses = TargetResponses::kAll;
  if (wanted.at("template") == "chatml") config.eos_token_id = wanted.at("eos").get<int64_t>();
  return config;
}

TEST(ChatExample, HasTheIdsAndLabelsOfLlmFoundry) {
  int examples = 0, dropped = 0, truncated = 0;
  for (const Json& wanted : Json::parse(read_file(golden("chat/cases.json")))) {
    const auto tokenizer = load_tokenizer(golden(wanted.at("tokenizer")));
    const ChatConfig config = config_of(wanted);
    const ChatEncoder encoder(config, chat_template_text(config, ""), *tokenizer, wanted.at("seq_len"));
    EXPECT_EQ(encoder.eos_token_id(), wanted.at("eos"));
    for (size_t i = 0; i < wanted.at("rows").size(); ++i) {
      const std::string line = wanted.at("rows")[i];
      const ChatExample example = encoder.encode(parse_chat_row(line, "row"));
      const Json& expected = wanted.at("examples")[i];
      EXPECT_EQ(example.has_target(), !expected.is_null()) << line;
      ++examples;
      truncated += example.truncated;
      if (expected.is_null()) {
        ++dropped;
        continue;
      }
      std::vector<int32_t> labels = example.tokens;
      for (size_t t = 0; t < labels.size(); ++t)
        if (example.learnt[t] == 0) labels[t] = -100;
      EXPECT_EQ(example.tokens, expected.at("input_ids").get<std::vector<int32_t>>()) << line;
      EXPECT_EQ(labels, expected.at("labels").get<std::vector<int32_t>>()) << line;
    }
  }
  EXPECT_GT(examples, 50);
  EXPECT_GT(dropped, 5);
  EXPECT_GT(truncated, dropped);
}

/// LLM Foundry's target_prompts: length>=N.
TEST(ChatExample, LearnsPromptsOfALength) {
  const auto tokenizer = load_tokenizer(golden("chat/tokenizer.json"));
  const auto encoded = [&](TargetPrompts prompts, int64_t least) {
    const ChatConfig config{.chat_template = "llama3", .target_prompts = prompts, .min_target_prompt = least};
    const ChatRow row = parse_chat_row(R"({"prompt": "a long question", "response": "yes"})", "row");
    return ChatEncoder(config, chat_template_text(config, ""), *tokenizer, 64).encode(row);
  };
  const auto none = encoded(TargetPrompts::kNone, 0).learnt, all = encoded(TargetPrompts::kAll, 0).learnt;
  ASSERT_NE(none, all);
  const int64_t length = std::find(none.begin(), none.end(), 1) - none.begin();
  EXPECT_GT(length, 2);
  EXPECT_EQ(encoded(TargetPrompts::kAll, length).learnt, all);
  EXPECT_EQ(encoded(TargetPrompts::kAll, length + 1).learnt, none);
}

TEST(ChatExample, EndsWithTheTokenThatTheTokenizerHas) {
  const auto small = load_tokenizer(golden("tokenizer/lines.json")),
             llama = load_tokenizer(golden("chat/tokenizer.json"));
  EXPECT_EQ(ChatEncoder({}, "", *small, 64).eos_token_id(), small->find("<|endoftext|>"));
  EXPECT_EQ(find_bos_token(*llama), "<|begin_of_text|>");
  EXPECT_EQ(llama->text_begin(), std::vector<int32_t>{llama->find("<|begin_of_text|>")});
  EXPECT_TRUE(small->text_begin().empty());
  const ChatConfig config{.path = "x.jsonl", .chat_template = "llama3"};
  EXPECT_EQ(ChatEncoder(config, "", *llama, 64).eos_token_id(), llama->find("<|eot_id|>"));
  expect_error(ExitCode::kUnusable,
               {"[data] the template llama3 of x.jsonl needs", "<|begin_of_text|>, <|start_header_id|>"},
               [&] { ChatEncoder(config, "", *small, 64); });
  std::string text = read_file(golden("tokenizer/lines.json"));
  for (size_t at = text.find("<|endoftext|>"); at != std::string::npos; at = text.find("<|endoftext|>"))
    text.replace(at, 13, "<|separator|>");
  const auto without = tokenizer_from_text(text, "t");
  expect_error(ExitCode::kUnusable, {"no known end-of-text token", "set eos_token_id"},
               [&] { ChatEncoder({}, "", *without, 64); });
}

TEST(ChatExample, TheFirstTokenIsNotATarget) {
  EXPECT_FALSE((ChatExample{.tokens = {5}, .learnt = {1}}.has_target()));
  EXPECT_FALSE((ChatExample{.tokens = {5, 6}, .learnt = {1, 0}}.has_target()));
  EXPECT_TRUE((ChatExample{.tokens = {5, 6}, .learnt = {0, 1}}.has_target()));
  EXPECT_FALSE(ChatExample{}.has_target());
}

}  // namespace
}  // namespace tycho
