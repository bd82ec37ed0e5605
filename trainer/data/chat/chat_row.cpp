// Checks a row key by key; errors name its line.
#include "trainer/data/chat/chat_row.h"

#include <algorithm>
#include <array>

#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/base/text/utf8.h"

namespace tycho {
namespace {

constexpr std::array kRoles = {"system", "user", "assistant", "tool"};
constexpr const char* kAssistant = "assistant";

/// Reports errors of a line. `place` names it.
class Line {
 public:
  explicit Line(std::string_view place) : place_(place) {}

  template <class... Args>
  [[noreturn]] void wrong(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ExitCode::kUnusable, "[{}] {}", place_, fmt::format(format, std::forward<Args>(args)...));
  }

  void check_utf8(std::string_view text) const {
    for (size_t at = 0; at < text.size();) {
      uint32_t code = 0;
      const size_t length = decode_utf8(text.data() + at, text.size() - at, code);
      if (length == 1 && code == 0xFFFD)
        wrong("is not UTF-8 at byte {} of the line: save the file as UTF-8", at + 1);
      at += length;
    }
  }

  std::string text(const Json& object, const char* key, const std::string& what) const {
    const Json& value = object.at(key);
    if (!value.is_string()) wrong("{} must be text, is {}", what, value.type_name());
    std::string text = value.get<std::string>();
    if (text.empty()) wrong("{} is empty: leave the line out", what);
    return text;
  }

 private:
  std::string_view place_;
};

std::string keys_of(const Json& object) {
  constexpr size_t kShown = 10;
  std::vector<std::string> keys;
  for (auto it = object.begin(); it != object.end() && keys.size() < kShown; ++it)
    keys.push_back('"' + it.key() + '"');
  const std::string text = fmt::format("{}", fmt::join(keys, ", "));
  return object.size() > kShown ? fmt::format("{} and {} more", text, object.size() - kShown) : text;
}

ChatMessage read_message(const Line& line, const Json& json, size_t number) {
  if (!json.is_object() || json.size() != 2 || !json.contains("role") || !json.contains("content"))
    line.wrong("message {} must have exactly \"role\" and \"content\", has {}", number,
               json.is_object() ? keys_of(json) : json.type_name());
  ChatMessage message{line.text(json, "role", fmt::format("the role of message {}", number)), {}};
  if (std::find(kRoles.begin(), kRoles.end(), message.role) == kRoles.end())
    line.wrong("message {} has the role \"{}\": roles are {}", number, message.role, fmt::join(kRoles, ", "));
  // The content of a system or user message may be empty, but nothing can be learnt from an empty response.
  const Json& content = json.at("content");
  if (content.is_string() && content.get_ref<const std::string&>().empty() && message.role != kAssistant)
    return message;
  message.content = line.text(json, "content", fmt::format("the content of message {}", number));
  return message;
}

std::vector<ChatMessage> read_messages(const Line& line, const Json& list) {
  if (!list.is_array()) line.wrong("\"messages\" must be a list, is {}", list.type_name());
  if (list.size() < 2) line.wrong("\"messages\" needs at least two messages, has {}", list.size());
  std::vector<ChatMessage> messages;
  for (const Json& json : list) {
    messages.push_back(read_message(line, json, messages.size() + 1));
    if (messages.size() > 1 && messages.back().role == messages[messages.size() - 2].role)
      line.wrong("messages {} and {} both have the role \"{}\": join them", messages.size() - 1,
                 messages.size(), messages.back().role);
  }
  if (messages.front().role == kAssistant)
    line.wrong("the first message is from the assistant: expected a prompt before it");
  if (messages.back().role != kAssistant)
    line.wrong("the last message has the role \"{}\": expected the assistant's, which is trained on",
               messages.back().role);
  return messages;
}

}  // namespace

ChatRow parse_chat_row(std::string_view text, std::string_view place, const std::string& weights) {
  const Line line(place);
  line.check_utf8(text);
  Json json = parse_json(text, place);
  if (!json.is_object()) line.wrong("expected a JSON object, is {}", json.type_name());
  ChatRow row;
  row.place = place;
  if (!weights.empty()) {
    const auto weight = json.find(weights);
    if (weight == json.end() || !weight->is_number())
      line.wrong("expected a number \"{}\", the row's weight, got {}", weights,
                 weight == json.end() ? "none" : weight->type_name());
    row.weight = weight->get<double>();
    json.erase(weight);
  }
  const char* response = json.contains("completion") ? "completion" : "response";
  if (json.size() == 1 && json.contains("messages")) {
    row.messages = read_messages(line, json.at("messages"));
  } else if (json.size() == 2 && json.contains("prompt") && json.contains(response)) {
    row.prompt = line.text(json, "prompt", "the prompt");
    row.response = line.text(json, response, "the response");
  } else {
    line.wrong("must have exactly the key \"messages\", or \"prompt\" and \"response\"; has {}",
               json.empty() ? "none" : keys_of(json));
  }
  return row;
}

}  // namespace tycho
