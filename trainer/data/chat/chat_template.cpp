// The templates, written out by hand; tests compare them with Hugging Face's.
#include "trainer/data/chat/chat_template.h"

#include <algorithm>
#include <string_view>

#include "trainer/data/text/utf8.h"

namespace tycho {
namespace {

/// As Python's str.strip(), which is Jinja's trim.
bool is_python_space(uint32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

std::string_view trimmed(std::string_view text) {
  size_t first = text.size(), end = 0;
  for (size_t at = 0; at < text.size();) {
    uint32_t code = 0;
    const size_t length = decode_utf8(text.data() + at, text.size() - at, code);
    if (!is_python_space(code)) {
      first = std::min(first, at);
      end = at + length;
    }
    at += length;
  }
  return first < end ? text.substr(first, end - first) : std::string_view();
}

// What stands before a message, and the message with what stands behind it.
std::string head_of(ChatTemplate chat_template, const std::string& role, bool first) {
  if (chat_template == ChatTemplate::kChatml) return "<|im_start|>" + role + "\n";
  return std::string(first ? "<|begin_of_text|>" : "") + "<|start_header_id|>" + role +
         "<|end_header_id|>\n\n";
}

std::string body_of(ChatTemplate chat_template, const std::string& content) {
  if (chat_template == ChatTemplate::kChatml) return content + "<|im_end|>\n";
  return std::string(trimmed(content)) + "<|eot_id|>";
}

}  // namespace

std::vector<ChatTurn> chat_turns(const ChatRow& row, ChatTemplate chat_template) {
  std::vector<ChatTurn> turns;
  std::string prompt;
  for (const ChatMessage& message : row.messages) {
    prompt += head_of(chat_template, message.role, &message == &row.messages.front());
    std::string body = body_of(chat_template, message.content);
    if (message.role != "assistant") {
      prompt += body;
      continue;
    }
    turns.push_back({std::move(prompt), std::move(body)});
    prompt.clear();
  }
  return turns;
}

std::vector<std::string> missing_template_tokens(ChatTemplate chat_template, const Tokenizer& tokenizer) {
  std::vector<std::string> tokens = {"<|im_start|>", "<|im_end|>"};
  if (chat_template == ChatTemplate::kLlama3)
    tokens = {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};
  std::erase_if(tokens, [&](const std::string& token) { return tokenizer.find(token) >= 0; });
  return tokens;
}

}  // namespace tycho
