// Requests of lm-evaluation-harness: how likely is this continuation of this context?
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/tasks/continuation.h"

namespace tycho {

/// Text, or token ids.
using HarnessText = std::variant<std::string, std::vector<int32_t>>;

struct HarnessRequest {
  HarnessText context, continuation;
  std::string place;  // "requests.jsonl:3", for messages
};

/// Reads one request per line: {"context": ..., "continuation": ...}, each a string or a list of token ids.
/// Ignores further fields and blank lines. `name` is the file's. Throws Error (kUsage) that names the line.
std::vector<HarnessRequest> read_harness_requests(std::string_view text, const std::string& name);

/// How a text is encoded: with the tokens that the tokenizer adds to every text, like HFLM of 0.4.13, or
/// without them, like 0.4.8, and 0.4.13 with add_bos_token=False.
enum class HarnessEncoding { kWithAdded, kPlain };

/// Encodes a request like HFLM: white space at the end of the context belongs to the continuation, both are
/// encoded together, and an empty context becomes the token that begins texts, or else the one that ends
/// them. A text that begins with that token gets no further ones. A context that is too long for `longest`
/// input tokens keeps its end. `tokenizer` may be null for tokens. Throws Error (kUsage) for a continuation
/// without tokens or with too many of them, and for tokens outside a vocabulary of `vocab_size`.
Continuation encode_request(const HarnessRequest& request, const Tokenizer* tokenizer, int64_t vocab_size,
                            int64_t longest, HarnessEncoding encoding = HarnessEncoding::kWithAdded);

}  // namespace tycho
