// Answers go to stdout, notes to stderr, so that a pipe has nothing but answers.
#include "host/chat/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/nearest.h"

namespace tycho {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    fail(ExitCode::kStorage, "[tycho chat] cannot write the answer: the reader of stdout has gone");
}

template <class... Args>
void note(fmt::format_string<Args...> text, Args&&... args) {
  fmt::print(stderr, "({})\n", fmt::format(text, std::forward<Args>(args)...));
}

bool is_blank(const std::string& text) { return text.find_first_not_of(" \t\r\n") == std::string::npos; }

}  // namespace

const std::vector<std::pair<std::string, std::string>>& chat_commands() {
  static const std::vector<std::pair<std::string, std::string>> commands = {
      {"/temp X", "temperature of the answers; 0 always takes the most likely token"},
      {"/system TEXT", "system message, without TEXT none; starts the conversation anew"},
      {"/reset", "forgets the conversation, not the system message"},
      {"/help", "these lines"},
      {"/quit", "ends, as Ctrl-D does"}};
  return commands;
}

Conversation::Conversation(ChatSession& session, ChatOptions options, const std::string& system)
    : session_(session), options_(std::move(options)) {
  if (!is_blank(system)) messages_.push_back({"system", system});
}

bool Conversation::take(const std::string& given, const std::atomic<int>& stop) {
  const std::string line = given.ends_with('\r') ? given.substr(0, given.size() - 1) : given;
  if (open_) {
    const size_t end = line.find(kQuotes);
    if (end != 0) text_ += (text_.empty() ? "" : "\n") + line.substr(0, end);
    return end == std::string::npos || finish(stop);
  }
  if (line.starts_with(kQuotes)) {
    const size_t end = line.find(kQuotes, kQuotes.size());
    open_ = true;
    text_ = line.substr(kQuotes.size(), end == std::string::npos ? end : end - kQuotes.size());
    return end == std::string::npos || finish(stop);
  }
  if (is_blank(line)) return true;
  if (line.front() == '/') return command(line);
  say(line, stop);
  return true;
}

bool Conversation::finish(const std::atomic<int>& stop) {
  open_ = false;
  if (const std::string text = std::exchange(text_, ""); !is_blank(text)) say(text, stop);
  return true;
}

bool Conversation::command(const std::string& line) {
  const size_t end = line.find(' ');
  const std::string name = line.substr(0, end);
  const size_t begin = end == std::string::npos ? end : line.find_first_not_of(' ', end);
  const std::string argument = begin == std::string::npos ? "" : line.substr(begin);
  if (name == "/temp") return set_temperature(argument), true;
  if (name == "/system") return set_system(argument), true;
  if (name == "/quit") return false;
  if (name == "/reset") {
    std::erase_if(messages_, [](const ChatMessage& message) { return message.role != "system"; });
    note("the conversation starts anew");
    return true;
  }
  if (name == "/help") {
    for (const auto& [command, what] : chat_commands()) fmt::print(stderr, "  {:<14}{}\n", command, what);
    fmt::print(stderr, "  {:<14}begins and ends a message of several lines\n", kQuotes);
    fmt::print(stderr, "  {:<14}stops an answer, and keeps what was written of it\n", "Ctrl-C");
    return true;
  }
  std::vector<std::string> names;
  for (const auto& [command, what] : chat_commands()) names.push_back(command.substr(0, command.find(' ')));
  fail(ExitCode::kUsage, "[chat] expected one of {}, got \"{}\"; a blank before / makes it a message{}",
       fmt::join(names, ", "), name, did_you_mean(name, names));
}

void Conversation::set_temperature(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  if (!is_number || !std::isfinite(value) || value < 0)
    fail(ExitCode::kUsage, "[chat] /temp expected a number from 0 on, such as /temp 0.7, got \"{}\"", text);
  options_.temperature = value;
  note("temperature {}", value);
}

void Conversation::set_system(const std::string& text) {
  messages_.clear();
  if (!text.empty()) messages_.push_back({"system", text});
  note("{}; the conversation starts anew", text.empty() ? "no system message" : "system message set");
}

void Conversation::say(const std::string& text, const std::atomic<int>& stop) {
  messages_.push_back({"user", text});
  ChatAnswer answer;
  try {
    answer = session_.answer(messages_, options_, print, stop);
  } catch (const Error&) {
    messages_.pop_back();
    throw;
  }
  options_.number += 1;
  print("\n");
  if (answer.dropped_messages > 0) {
    const int64_t first = messages_.front().role == "system" ? 1 : 0;
    messages_.erase(messages_.begin() + first,
                    messages_.begin() + first + static_cast<int64_t>(answer.dropped_messages));
    note("the model's longest sequence has {} tokens: the oldest {} messages were dropped",
         session_.facts().longest, answer.dropped_messages);
  }
  messages_.push_back({"assistant", answer.text});
  if (answer.finish == "interrupted") note("interrupted; the conversation goes on with what was written");
  if (answer.finish == "length")
    note("the answer ends after {} tokens, {}", answer.tokens,
         answer.tokens < options_.max_tokens ? "the model's longest sequence" : "--max-tokens");
}

}  // namespace tycho
