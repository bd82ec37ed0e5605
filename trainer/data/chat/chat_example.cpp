// Encodes turns one by one, as LLM Foundry does, so that token boundaries agree.
#include "trainer/data/chat/chat_example.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/data/rows/skipped_rows.h"
#include "trainer/data/tokenizer/special_tokens.h"

namespace tycho {
namespace {

void check_template(const ChatConfig& config, const Tokenizer& tokenizer) {
  if (config.chat_template != "llama3") return;
  const std::vector<std::string> missing = missing_template_tokens(config, tokenizer);
  if (!missing.empty())
    fail(ExitCode::kUnusable,
         "[data] the template llama3 of {} needs tokens that the tokenizer lacks: {}; write template = "
         "\"chatml\", or use a Llama 3 tokenizer",
         config.path, fmt::join(missing, ", "));
}

int32_t find_eos(const ChatConfig& config, const Tokenizer& tokenizer) {
  if (config.eos_token_id) return static_cast<int32_t>(*config.eos_token_id);
  if (config.chat_template == "llama3") return tokenizer.find("<|eot_id|>");
  const std::string token = find_eos_token(tokenizer);
  if (token.empty())
    fail(ExitCode::kUnusable,
         "[data] the tokenizer has no known end-of-text token, which examples of {} need: set eos_token_id",
         config.path);
  return tokenizer.find(token);
}

}  // namespace

bool ChatExample::has_target() const {
  return std::find(learnt.begin() + !learnt.empty(), learnt.end(), 1) != learnt.end();
}

ChatEncoder::ChatEncoder(const ChatConfig& config, const std::string& template_text,
                         const Tokenizer& tokenizer, int64_t seq_len)
    : config_(config),
      template_(config, template_text, tokenizer),
      tokenizer_(tokenizer),
      seq_len_(static_cast<size_t>(seq_len)) {
  check_template(config, tokenizer);
  eos_ = find_eos(config, tokenizer);
}

std::vector<TokenTurn> ChatEncoder::tokenize(const ChatRow& row) const {
  const bool templated = !row.messages.empty();
  const std::vector<ChatTurn> texts =
      templated ? template_.turns(row) : std::vector<ChatTurn>{{row.prompt, row.response}};
  const auto encoded = [&](const std::string& text) {
    try {
      return tokenizer_.encode(text);
    } catch (const BadRow& bad) {
      throw BadRow(fmt::format("[{}] {}", row.place, bad.what()));
    }
  };
  std::vector<TokenTurn> turns;
  for (const ChatTurn& text : texts) {
    // A template includes its special tokens; a prompt without one gets those that the tokenizer puts before
    // any text.
    TokenTurn turn{templated ? std::vector<int32_t>() : tokenizer_.text_begin(), encoded(text.response)};
    const std::vector<int32_t> prompt = encoded(text.prompt);
    turn.prompt.insert(turn.prompt.end(), prompt.begin(), prompt.end());
    turns.push_back(std::move(turn));
  }
  return turns;
}

ChatExample ChatEncoder::encode(const ChatRow& row) const {
  ChatExample example = join(tokenize(row));
  example.templated = !row.messages.empty();
  return example;
}

ChatExample ChatEncoder::join(std::vector<TokenTurn> turns) const {
  ChatExample example;
  const auto add = [&](const std::vector<int32_t>& ids, bool learnt) {
    example.tokens.insert(example.tokens.end(), ids.begin(), ids.end());
    example.learnt.resize(example.tokens.size(), learnt);
  };
  for (TokenTurn& turn : turns) {
    const bool last = &turn == &turns.back();
    add(turn.prompt, config_.target_prompts == TargetPrompts::kAll &&
                         std::ssize(turn.prompt) >= config_.min_target_prompt);
    if (last && (turn.response.empty() || turn.response.back() != eos_)) turn.response.push_back(eos_);
    add(turn.response, last || config_.target_responses == TargetResponses::kAll);
  }
  cut(example);
  return example;
}

ChatExample ChatEncoder::labelled(std::vector<int32_t> tokens, const std::vector<int32_t>& labels) const {
  ChatExample example;
  example.tokens = std::move(tokens);
  for (const int32_t label : labels) example.learnt.push_back(label >= 0);
  cut(example);
  return example;
}

void ChatEncoder::cut(ChatExample& example) const {
  example.truncated = example.tokens.size() > seq_len_;
  if (!example.truncated) return;
  example.num_cut = std::ssize(example.tokens) - static_cast<int64_t>(seq_len_);
  example.tokens.resize(seq_len_);
  example.learnt.resize(seq_len_);
}

}  // namespace tycho
