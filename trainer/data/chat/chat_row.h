// One line of finetuning data: a conversation, or a prompt with its response.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

struct ChatMessage {
  std::string role;  // "system", "user", "assistant" or "tool"
  std::string content;
};

struct ChatRow {
  // Two or more messages. The first is not from the assistant, the last one is, and no role occurs twice in a
  // row. Empty for a prompt with a response.
  std::vector<ChatMessage> messages;
  std::string prompt, response;
  double weight = 1;  // of its targets
  std::string place;  // for messages: "file:line"
};

/// Reads {"messages": [{"role", "content"}, ...]} or {"prompt", "response"}; "completion" is another name of
/// "response". Throws Error (kUnusable) "[place] ..." for everything else: invalid JSON or UTF-8, missing or
/// unknown keys, empty texts, and roles that are unknown or out of order. `weights`: the field with the row's
/// weight, which must then be there; "" for none.
ChatRow parse_chat_row(std::string_view line, std::string_view place, const std::string& weights = "");

}  // namespace tycho
