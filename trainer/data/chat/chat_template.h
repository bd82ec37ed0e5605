// How a conversation becomes text: fixed templates, no Jinja.
#pragma once
#include <string>
#include <vector>

#include "trainer/data/chat/chat_row.h"
#include "trainer/data/config.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

/// A response of the assistant and everything before it that no turn before has.
struct ChatTurn {
  std::string prompt, response;
};

/// Of a row with messages. All turns joined are the conversation as Hugging Face's apply_chat_template gives
/// it with ChatML (LLM Foundry's default) or Meta's template of Llama 3.
std::vector<ChatTurn> chat_turns(const ChatRow& row, ChatTemplate chat_template);

/// The special tokens of the template that the tokenizer lacks.
std::vector<std::string> missing_template_tokens(ChatTemplate chat_template, const Tokenizer& tokenizer);

}  // namespace tycho
