// How a conversation becomes text: a Jinja template, known by name, of the tokenizer, or from a file.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/chat/chat_row.h"
#include "trainer/data/chat_config.h"
#include "trainer/data/jinja/expression_evaluator.h"
#include "trainer/data/jinja/template.h"
#include "trainer/data/jinja/value.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

/// Its name beside the tokenizer, where transformers keeps it.
inline constexpr char kChatTemplateFile[] = "chat_template.jinja";

/// The text of the template that `config` names; `tokenizer_path` is where "tokenizer" looks: in
/// chat_template.jinja beside it, then in tokenizer_config.json. Throws Error (kUnusable) when there is none.
std::string chat_template_text(const ChatConfig& config, const std::string& tokenizer_path);

/// A response of the assistant and everything before it that no turn before has.
struct ChatTurn {
  std::string prompt, response;
};

/// Immutable; used by several threads at once.
class ChatTemplate {
 public:
  /// `text`: what chat_template_text gave. Throws Error (kUnusable) for what our Jinja does not support.
  ChatTemplate(const ChatConfig& config, const std::string& text, const Tokenizer& tokenizer);

  /// Of a row with messages, cut as LLM Foundry does: the conversation up to each response is rendered once
  /// with the response, once without and with add_generation_prompt; what the second has is the prompt. All
  /// turns joined are what transformers' apply_chat_template gives. Throws Error (kUnusable) that names the
  /// row when the template refuses it, or writes earlier messages in another way when more follow.
  std::vector<ChatTurn> turns(const ChatRow& row) const;

 private:
  std::string rendered(const std::vector<jinja::Value>& messages, size_t count, bool generation) const;

  jinja::Template template_;
  std::vector<std::pair<std::string, jinja::Value>> names_;
  std::optional<jinja::Date> date_;
};

/// The special tokens of the template that the tokenizer lacks; known for "chatml" and "llama3".
std::vector<std::string> missing_template_tokens(const ChatConfig& config, const Tokenizer& tokenizer);

}  // namespace tycho
