// Conversations as text.
#include "trainer/data/chat/chat_template.h"

#include "tests/trainer/data/data_testing.h"

namespace tycho {
namespace {

using testing::golden;

const ChatRow kTalk = {
    .messages = {
        {"system", " s\n"}, {"user", "u"}, {"assistant", "a"}, {"user", "v"}, {"assistant", "\u3000b \x1c"}}};

TEST(ChatTemplate, WritesChatml) {
  const std::vector<ChatTurn> turns = chat_turns(kTalk, ChatTemplate::kChatml);
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(turns[0].prompt,
            "<|im_start|>system\n s\n<|im_end|>\n<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(turns[0].response, "a<|im_end|>\n");
  EXPECT_EQ(turns[1].prompt, "<|im_start|>user\nv<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(turns[1].response, "\u3000b \x1c<|im_end|>\n");
}

TEST(ChatTemplate, WritesLlama3WithTrimmedContents) {
  const std::vector<ChatTurn> turns = chat_turns(kTalk, ChatTemplate::kLlama3);
  ASSERT_EQ(turns.size(), 2u);
  EXPECT_EQ(turns[0].prompt,
            "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\ns<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nu<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(turns[1].response, "b<|eot_id|>");
}

TEST(ChatTemplate, NamesTheTokensThatATokenizerLacks) {
  const auto small = load_tokenizer(golden("tokenizer/lines.json")),
             llama = load_tokenizer(golden("chat/tokenizer.json"));
  EXPECT_EQ(missing_template_tokens(ChatTemplate::kChatml, *small),
            (std::vector<std::string>{"<|im_start|>", "<|im_end|>"}));
  EXPECT_EQ(missing_template_tokens(ChatTemplate::kLlama3, *small).size(), 4u);
  EXPECT_TRUE(missing_template_tokens(ChatTemplate::kLlama3, *llama).empty());
}

}  // namespace
}  // namespace tycho
