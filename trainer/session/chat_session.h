// A conversation with a trained model, as the host sees it. Torch-free.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/data/chat/chat_row.h"

namespace tycho {

struct ChatRequest {
  std::string path;       // of a TrainedSource
  std::string tokenizer;  // "" for the model's own
  /// "chatml", "llama3", "none" or the path of a file; "" for the model's own, and "none" if it has none.
  std::string chat_template;
  bool ema = false;  // use the moving average of the weights
  int threads = 0;
  std::string device = "auto";
};

struct ChatOptions {
  double temperature = 1.0;  // 0: greedy
  int64_t top_k = 0;         // 0: off
  double top_p = 1.0;
  double repetition_penalty = 1.0;  // 1: none
  int64_t max_tokens = 512;
  std::vector<std::string> stop;  // none is empty
  uint64_t seed = 0;
  int64_t number = 0;  // number of the answer; each has its own random numbers
};

struct ChatFacts {
  std::string place;          // checkpoint or folder
  std::string chat_template;  // describes where the template is from
  bool is_plain = false;      // the model has no template, and none was given
  int64_t longest = 0;        // tokens of the model's longest sequence
};

struct ChatAnswer {
  std::string text;
  std::string finish;           // "stop", "length", "eos" or "interrupted"
  int64_t tokens = 0;           // number chosen
  int64_t prompt_tokens = 0;    // tokens of the conversation before the answer
  int64_t reused_tokens = 0;    // tokens of these whose keys and values were kept from earlier answers
  size_t dropped_messages = 0;  // messages left out at the front, after a system message
};

/// A model that answers. Owned by one thread.
class ChatSession {
 public:
  virtual ~ChatSession() = default;
  virtual const ChatFacts& facts() const = 0;
  /// Answers a conversation: maybe a system message, then messages of the user and the assistant by turns,
  /// the last one from the user. Passes whole UTF-8 characters to `emit` as they are generated; a `stop` that
  /// is not 0 ends the answer. Throws Error: kUsage when the last message does not fit into the model's
  /// longest sequence, kUnusable when the template refuses the conversation.
  virtual ChatAnswer answer(const std::vector<ChatMessage>& messages, const ChatOptions& options,
                            const std::function<void(const std::string&)>& emit,
                            const std::atomic<int>& stop) = 0;
};

}  // namespace tycho
