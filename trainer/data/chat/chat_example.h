// A conversation, or a prompt with its response, as tokens, and which of them are learnt.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/chat/chat_row.h"
#include "trainer/data/chat/chat_template.h"
#include "trainer/data/chat_config.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

struct ChatExample {
  std::vector<int32_t> tokens;
  std::vector<uint8_t> learnt;  // by token: 1 where the model should have predicted it (LLM Foundry's labels)
  bool templated = false;       // made of messages, not of a prompt and a response
  bool truncated = false;
  int64_t num_cut = 0;  // tokens that were behind seq_len
  /// Whether a token behind the first is learnt: the first is predicted by nothing.
  bool has_target() const;
};

/// A prompt and the response to it.
struct TokenTurn {
  std::vector<int32_t> prompt, response;
};

/// What turns rows into examples. Immutable; used by several threads at once.
class ChatEncoder {
 public:
  /// `template_text`: of chat_template_text. Throws Error (kUnusable) when the template is not supported, and
  /// when the tokenizer lacks tokens of the template llama3, or an end of text. For chatml they are text
  /// then, as in LLM Foundry.
  ChatEncoder(const ChatConfig& config, const std::string& template_text, const Tokenizer& tokenizer,
              int64_t seq_len);

  /// As LLM Foundry: prompts and responses are encoded one by one and joined, the last response ends with
  /// eos, and what is behind seq_len tokens is cut off, eos included. Throws as ChatTemplate::turns.
  ChatExample encode(const ChatRow& row) const;
  /// The tokens of each turn of a row, of which encode() joins all. Throws as ChatTemplate::turns.
  std::vector<TokenTurn> tokenize(const ChatRow& row) const;
  /// The same from the tokens of each turn; the list is not empty.
  ChatExample join(std::vector<TokenTurn> turns) const;
  int32_t eos_token_id() const { return eos_; }

 private:
  ChatConfig config_;
  ChatTemplate template_;
  const Tokenizer& tokenizer_;
  size_t seq_len_;
  int32_t eos_;
};

}  // namespace tycho
