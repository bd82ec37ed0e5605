// Follows TemplateLM._encode_pair, HFLM.tok_encode and HFLM._loglikelihood_tokens of lm-evaluation-harness
// 0.4.13.
#include "trainer/tasks/harness_requests.h"

#include <algorithm>
#include <utility>

#include "trainer/base/error.h"
#include "trainer/base/json.h"
#include "trainer/data/tokenizer/special_tokens.h"
#include "trainer/tasks/python_text.h"

namespace tycho {
namespace {

HarnessText text_of(const Json& object, const char* field, const std::string& place) {
  const auto found = object.find(field);
  if (found != object.end() && found->is_string()) return found->get<std::string>();
  const auto is_id = [](const Json& one) {
    return one.is_number_integer() && one.get<int64_t>() >= 0 && one.get<int64_t>() <= INT32_MAX;
  };
  if (found == object.end() || !found->is_array() || !std::all_of(found->begin(), found->end(), is_id))
    fail(
        ExitCode::kUsage,
        "[eval] {} expected \"{}\" as a string or a list of token ids, got {}: write {{\"context\": \"...\", "
        "\"continuation\": \"...\"}}",
        place, field, found == object.end() ? "no such field" : found->dump().substr(0, 80));
  return found->get<std::vector<int32_t>>();
}

bool is_empty(const HarnessText& text) {
  return std::visit([](const auto& one) { return one.empty(); }, text);
}

/// Returns the tokens of a request; text is encoded.
std::vector<int32_t> tokens_of(const HarnessText& text, const Tokenizer* tokenizer,
                               const std::string& place) {
  if (const auto* ids = std::get_if<std::vector<int32_t>>(&text)) return *ids;
  if (tokenizer == nullptr)
    fail(ExitCode::kUsage, "[eval] {} is text, but the model was trained without a tokenizer: give token ids",
         place);
  return tokenizer->encode(std::get<std::string>(text));
}

/// Returns the token that replaces an empty context, "" for none.
std::string prefix_token(const Tokenizer& tokenizer) {
  const std::string bos = find_bos_token(tokenizer);
  return bos.empty() ? find_eos_token(tokenizer) : bos;
}

std::vector<int32_t> instead_of_nothing(const Tokenizer* tokenizer, const std::string& place) {
  if (tokenizer != nullptr)
    if (const std::string token = prefix_token(*tokenizer); !token.empty()) return {tokenizer->find(token)};
  fail(ExitCode::kUsage,
       "[eval] {} has an empty context, and the model's tokenizer has no token that begins or ends texts: "
       "write one token of context",
       place);
}

struct EncodedPair {
  std::vector<int32_t> context, continuation;
};

/// Encodes a text. One that begins with the prefix token keeps it and gets no second one.
std::vector<int32_t> encode_text(const Tokenizer& tokenizer, const std::string& text,
                                 HarnessEncoding encoding) {
  std::vector<int32_t> ids = tokenizer.encode(text);
  const std::string prefix = prefix_token(tokenizer);
  if (encoding == HarnessEncoding::kPlain || (!prefix.empty() && text.starts_with(prefix))) return ids;
  const std::vector<int32_t> begin = tokenizer.text_begin(), end = tokenizer.text_end();
  ids.insert(ids.begin(), begin.begin(), begin.end());
  ids.insert(ids.end(), end.begin(), end.end());
  return ids;
}

/// Encodes a continuation without context. If it begins with the prefix token, that becomes its context.
EncodedPair without_context(const Tokenizer& tokenizer, const std::string& continuation) {
  std::vector<int32_t> ids = tokenizer.encode(continuation);
  const std::string prefix = prefix_token(tokenizer);
  if (prefix.empty() || ids.empty() || ids[0] != tokenizer.find(prefix)) return {{}, std::move(ids)};
  return {{ids[0]}, {ids.begin() + 1, ids.end()}};
}

EncodedPair encode_pair(const HarnessRequest& request, const Tokenizer* tokenizer, HarnessEncoding encoding) {
  const auto* context = std::get_if<std::string>(&request.context);
  const auto* continuation = std::get_if<std::string>(&request.continuation);
  if (context == nullptr || continuation == nullptr || tokenizer == nullptr)
    return {tokens_of(request.context, tokenizer, request.place),
            tokens_of(request.continuation, tokenizer, request.place)};
  if (context->empty()) return without_context(*tokenizer, *continuation);
  std::vector<int32_t> before = encode_text(*tokenizer, std::string(python_rstrip(*context)), encoding);
  const std::vector<int32_t> whole = encode_text(*tokenizer, *context + *continuation, encoding);
  const size_t cut = std::min(before.size(), whole.size());
  return {std::move(before), {whole.begin() + static_cast<std::ptrdiff_t>(cut), whole.end()}};
}

}  // namespace

std::vector<HarnessRequest> read_harness_requests(std::string_view text, const std::string& name) {
  std::vector<HarnessRequest> requests;
  size_t number = 1;
  for (size_t begin = 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    begin = end + 1;
    if (python_strip(line).empty()) continue;
    const std::string place = fmt::format("{}:{}", name, number);
    const Json object = parse_json(line, place);
    if (!object.is_object())
      fail(ExitCode::kUsage, "[eval] {} expected a JSON object, got {}", place, object.dump().substr(0, 80));
    requests.push_back({text_of(object, "context", place), text_of(object, "continuation", place), place});
  }
  if (requests.empty())
    fail(ExitCode::kUsage, "[eval] expected requests, one JSON object per line, and {} has none", name);
  return requests;
}

Continuation encode_request(const HarnessRequest& request, const Tokenizer* tokenizer, int64_t vocab_size,
                            int64_t longest, HarnessEncoding encoding) {
  auto [context, asked] = encode_pair(request, tokenizer, encoding);
  if (context.empty()) context = instead_of_nothing(tokenizer, request.place);
  if (asked.empty() || std::cmp_greater(asked.size(), longest))
    fail(ExitCode::kUsage,
         "[eval] {} expected a continuation of 1 to {} tokens (the model's longest sequence), got {}{}",
         request.place, longest, asked.size(),
         is_empty(request.continuation) || !asked.empty() ? ""
                                                          : ": its text merges into the context's tokens");
  Continuation made{.tokens = std::move(context), .num_asked = static_cast<int64_t>(asked.size())};
  made.tokens.insert(made.tokens.end(), asked.begin(), asked.end());
  for (const int32_t id : made.tokens)
    if (id >= vocab_size)
      fail(ExitCode::kUsage, "[eval] {} expected tokens from 0 to {}, got {}", request.place, vocab_size - 1,
           id);
  // The last token is asked about and no input.
  const int64_t excess = static_cast<int64_t>(made.tokens.size()) - (longest + 1);
  if (excess > 0) made.tokens.erase(made.tokens.begin(), made.tokens.begin() + excess);
  return made;
}

}  // namespace tycho
