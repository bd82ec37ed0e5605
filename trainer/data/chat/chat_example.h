// A conversation, or a prompt with its response, as tokens with a mark for each token that is learnt.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/chat/chat_row.h"
#include "trainer/data/chat/chat_template.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/recipe/chat_data.h"

namespace tycho {

struct ChatExample {
  std::vector<int32_t> tokens;
  std::vector<uint8_t> learnt;  // by token: 1 where the model should have predicted it (LLM Foundry's labels)
  bool templated = false;       // made of messages, not of a prompt and a response
  bool truncated = false;
  double weight = 1;    // of its targets
  int64_t num_cut = 0;  // tokens beyond seq_len
  /// True if any token after the first is learnt: no token predicts the first one.
  bool has_target() const;
};

/// A prompt and the response to it.
struct TokenTurn {
  std::vector<int32_t> prompt, response;
};

/// Turns rows into examples. Immutable; used by several threads at once.
class ChatEncoder {
 public:
  /// `template_text`: result of chat_template_text. Throws Error (kUnusable) when the template is not
  /// supported, when the tokenizer lacks tokens of the template llama3, and when it has no end-of-text token.
  /// Tokens of chatml that the tokenizer lacks are encoded as text, as in LLM Foundry.
  ChatEncoder(const ChatConfig& config, const std::string& template_text, const Tokenizer& tokenizer,
              int64_t seq_len);

  /// Encodes a row as LLM Foundry does: prompts and responses are encoded one by one and joined, the last
  /// response ends with eos, and tokens beyond seq_len are cut off, eos included. Throws as
  /// ChatTemplate::turns.
  ChatExample encode(const ChatRow& row) const;
  /// Returns the tokens of each turn of a row; encode() joins them. Throws as ChatTemplate::turns.
  std::vector<TokenTurn> tokenize(const ChatRow& row) const;
  /// Joins the tokens of turns into an example, as encode() does. Requires at least one turn.
  ChatExample join(std::vector<TokenTurn> turns) const;
  /// Makes an example of tokens with a label each, as transformers has them: the token itself where it is
  /// learnt, else -100. Adds no token. Requires as many labels as tokens.
  ChatExample labelled(std::vector<int32_t> tokens, const std::vector<int32_t>& labels) const;
  int32_t eos_token_id() const { return eos_; }

 private:
  void cut(ChatExample& example) const;

  ChatConfig config_;
  ChatTemplate template_;
  const Tokenizer& tokenizer_;
  size_t seq_len_;
  int32_t eos_;
};

}  // namespace tycho
