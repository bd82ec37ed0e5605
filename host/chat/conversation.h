// One conversation of `tycho chat`: its history, and the commands that a line may be.
#pragma once
#include <string>
#include <vector>

#include "trainer/data/chat/chat_row.h"
#include "trainer/session/chat_session.h"

namespace tycho {

/// Commands, with their arguments, for help and completion.
const std::vector<std::pair<std::string, std::string>>& chat_commands();

class Conversation {
 public:
  /// `session` must outlive this object. `system`: the system message; "" for none.
  Conversation(ChatSession& session, ChatOptions options, const std::string& system);

  /// Takes a line of the user: a message, a command, or part of a text between lines of """. Prints the
  /// answer. Returns false for /quit. Throws Error (kUsage) for an unknown command and a message that is too
  /// long; the conversation then stays as it was.
  bool take(const std::string& line, const std::atomic<int>& stop);
  /// True between lines of """.
  bool is_open() const { return open_; }
  /// Takes a text that no line of """ has closed. Returns as take() does.
  bool finish(const std::atomic<int>& stop);

 private:
  bool command(const std::string& line);
  void say(const std::string& text, const std::atomic<int>& stop);
  void set_system(const std::string& text);
  void set_temperature(const std::string& text);

  ChatSession& session_;
  ChatOptions options_;
  std::vector<ChatMessage> messages_;
  bool open_ = false;
  std::string text_;  // lines since """
};

}  // namespace tycho
