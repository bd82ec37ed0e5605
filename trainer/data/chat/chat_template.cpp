// The built-in templates are Jinja too, so that only one function turns messages into text.
#include "trainer/data/chat/chat_template.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json.h"
#include "trainer/data/tokenizer/local_tokenizer.h"

namespace tycho {
namespace {

/// Template that LLM Foundry uses for a tokenizer without one.
constexpr std::string_view kChatmlText =
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + "
    "'<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
/// Template of Llama 3.
constexpr std::string_view kLlama3Text =
    "{{ '<|begin_of_text|>' }}{% for message in messages %}{{ '<|start_header_id|>' + message['role'] + "
    "'<|end_header_id|>\\n\\n' + message['content'] | trim + '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}";

/// Template of models that were trained on texts alone.
constexpr std::string_view kPlainText =
    "{% for message in messages %}{{ message['content'] }}{% if message['role'] != 'user' %}{{ '\\n' }}"
    "{% endif %}{% endfor %}";

/// Returns the template of tokenizer_config.json, which has one, or a list of them with names; "" if there is
/// none.
std::string template_of(const Json& config) {
  const auto found = config.find("chat_template");
  if (found == config.end()) return "";
  if (found->is_string()) return found->get<std::string>();
  if (!found->is_array()) return "";
  for (const Json& one : *found)
    if (one.is_object() && one.value("name", Json()) == "default" && one.contains("template") &&
        one.at("template").is_string())
      return one.at("template").get<std::string>();
  return "";
}

std::string template_beside(const std::string& tokenizer) {
  namespace fs = std::filesystem;
  const std::string tokenizer_path = local_tokenizer(tokenizer);
  const std::string file = fs::path(tokenizer_path).replace_filename(kChatTemplateFile);
  std::error_code error;
  if (fs::exists(file, error)) return read_file(file);
  std::string text = chat_template_in(read_files_beside_tokenizer(tokenizer_path));
  if (text.empty())
    fail(
        ExitCode::kUnusable,
        "[data] template = \"tokenizer\", but beside {} there is neither {} nor a chat_template in {}: write "
        "template = \"chatml\", or the path of a .jinja file",
        tokenizer_path, kChatTemplateFile, kTokenizerConfigFile);
  return text;
}

jinja::Value jinja_text(std::string text) { return jinja::Value(std::move(text)); }

std::vector<jinja::Value> jinja_messages(const std::vector<ChatMessage>& messages) {
  jinja::Rendering rendering;
  std::vector<jinja::Value> values;
  for (const ChatMessage& message : messages)
    values.push_back(jinja::make_dict(
        {{"role", jinja_text(message.role)}, {"content", jinja_text(message.content)}}, rendering));
  return values;
}

}  // namespace

std::string chat_template_in(const std::map<std::string, std::string>& files) {
  if (const auto own = files.find(kChatTemplateFile); own != files.end()) return own->second;
  const auto config = files.find(kTokenizerConfigFile);
  if (config == files.end()) return "";
  const Json json = parse_json(config->second, kTokenizerConfigFile);
  return json.is_object() ? template_of(json) : "";
}

std::string chat_template_text(const ChatConfig& config, const std::string& tokenizer_path) {
  if (config.chat_template == "chatml") return std::string(kChatmlText);
  if (config.chat_template == "llama3") return std::string(kLlama3Text);
  if (config.chat_template == kPlainTemplate) return std::string(kPlainText);
  return config.chat_template == "tokenizer" ? template_beside(tokenizer_path)
                                             : read_file(config.chat_template);
}

ChatTemplate::ChatTemplate(const ChatConfig& config, const std::string& text, const Tokenizer& tokenizer)
    : template_(text, config.chat_template == "tokenizer" ? "the tokenizer's chat template"
                                                          : config.chat_template) {
  jinja::Rendering rendering;
  const TokenizerInfo& info = tokenizer.info();
  for (const auto& [name, token] : {std::pair("bos_token", &info.bos),
                                    {"eos_token", &info.eos},
                                    {"pad_token", &info.pad},
                                    {"unk_token", &info.unknown}})
    if (!token->empty()) names_.emplace_back(name, jinja_text(*token));
  names_.emplace_back("tools", jinja::Value());
  names_.emplace_back("documents", jinja::Value());
  if (const auto day = config.template_day()) {
    date_ = jinja::Date{static_cast<int>(day->year()), static_cast<int>(static_cast<unsigned>(day->month())),
                        static_cast<int>(static_cast<unsigned>(day->day()))};
    // LLM Foundry uses this name.
    names_.emplace_back(
        "date_string",
        jinja_text(jinja::Template("{{ strftime_now('%d %b %Y') }}", "date").render({}, date_)));
  }
}

std::string ChatTemplate::rendered(const std::vector<jinja::Value>& messages, size_t count,
                                   bool generation) const {
  jinja::Rendering rendering;
  auto names = names_;
  const auto end = messages.begin() + static_cast<int64_t>(count);
  names.emplace_back("messages",
                     jinja::make_list({messages.begin(), end}, jinja::ListKind::kList, rendering));
  names.emplace_back("add_generation_prompt", jinja::Value::Data(generation));
  return template_.render(names, date_);
}

std::vector<ChatTurn> ChatTemplate::turns(const ChatRow& row) const try {
  const std::vector<jinja::Value> messages = jinja_messages(row.messages);
  std::vector<ChatTurn> turns;
  std::string before;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (row.messages[i].role != "assistant") continue;
    const std::string prompt = rendered(messages, i, true);
    std::string whole = rendered(messages, i + 1, false);
    if (!prompt.starts_with(before) || !whole.starts_with(prompt))
      fail(ExitCode::kUnusable,
           "the template writes what comes before message {} in another way when it follows, so that prompts "
           "and responses cannot be told apart: use a template that only adds text",
           i + 1);
    turns.push_back({prompt.substr(before.size()), whole.substr(prompt.size())});
    before = std::move(whole);
  }
  return turns;
} catch (const Error& error) {
  fail(ExitCode::kUnusable, "[{}] {}", row.place, error.what());
}

std::string ChatTemplate::prompt(const std::vector<ChatMessage>& messages) const {
  return rendered(jinja_messages(messages), messages.size(), true);
}

std::string ChatTemplate::end_of_answer() const try {
  constexpr std::string_view kAnswer = "an answer";
  const std::string text =
      rendered(jinja_messages({{"user", "a question"}, {"assistant", std::string(kAnswer)}}), 2, false);
  const size_t found = text.rfind(kAnswer);
  if (found == std::string::npos) return "";
  constexpr const char* kBlank = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlank, found + kAnswer.size());
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
} catch (const Error&) {
  return "";  // the template takes other conversations only
}

std::vector<std::string> missing_template_tokens(const ChatConfig& config, const Tokenizer& tokenizer) {
  std::vector<std::string> tokens;
  if (config.chat_template == "chatml") tokens = {"<|im_start|>", "<|im_end|>"};
  if (config.chat_template == "llama3")
    tokens = {"<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"};
  std::erase_if(tokens, [&](const std::string& token) { return tokenizer.find(token) >= 0; });
  return tokens;
}

}  // namespace tycho
