// Turns conversations into text by a Jinja template, which is built in, the tokenizer's, or in a file.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/data/chat/chat_row.h"
#include "trainer/data/templates/expression_evaluator.h"
#include "trainer/data/templates/template.h"
#include "trainer/data/templates/value.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/recipe/chat_data.h"

namespace tycho {

/// Name of the template's file next to the tokenizer, where transformers keeps it.
inline constexpr char kChatTemplateFile[] = "chat_template.jinja";

/// Returns the text of the template that `config` names. For "tokenizer", reads chat_template.jinja next to
/// `tokenizer_path`, else tokenizer_config.json. Throws Error (kUnusable) when there is none.
std::string chat_template_text(const ChatConfig& config, const std::string& tokenizer_path);

/// Name of the template without roles: the assistant continues what the user wrote.
inline constexpr char kPlainTemplate[] = "none";

/// Returns the text of the template among a model's small files: chat_template.jinja, else
/// tokenizer_config.json's; "" when there is none.
std::string chat_template_in(const std::map<std::string, std::string>& files);

/// A response of the assistant, and everything before it that belongs to no earlier turn.
struct ChatTurn {
  std::string prompt, response;
};

/// Immutable; used by several threads at once.
class ChatTemplate {
 public:
  /// `text`: result of chat_template_text. Throws Error (kUnusable) for syntax that our Jinja does not
  /// support.
  ChatTemplate(const ChatConfig& config, const std::string& text, const Tokenizer& tokenizer);

  /// Cuts a row with messages into turns as LLM Foundry does. The conversation up to each response is
  /// rendered once with the response and once without it, with add_generation_prompt; the second text is the
  /// prompt. All turns joined equal the result of transformers' apply_chat_template. Throws Error (kUnusable)
  /// that names the row when the template refuses it, or renders earlier messages differently when more
  /// follow.
  std::vector<ChatTurn> turns(const ChatRow& row) const;

  /// Returns the text after which the assistant's next message begins, as transformers' apply_chat_template
  /// with add_generation_prompt does. Throws Error (kUnusable) when the template refuses the conversation.
  std::string prompt(const std::vector<ChatMessage>& messages) const;
  /// Returns what the template writes after a message of the assistant, without white space around it.
  std::string end_of_answer() const;

 private:
  std::string rendered(const std::vector<jinja::Value>& messages, size_t count, bool generation) const;

  jinja::Template template_;
  std::vector<std::pair<std::string, jinja::Value>> names_;
  std::optional<jinja::Date> date_;
};

/// Returns the special tokens of the template that the tokenizer lacks. Known for "chatml" and "llama3";
/// empty for other templates.
std::vector<std::string> missing_template_tokens(const ChatConfig& config, const Tokenizer& tokenizer);

}  // namespace tycho
