// Requests of lm-evaluation-harness: how likely is this continuation of this context?
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/icl/continuation.h"

namespace tycho {

/// Text, or tokens of one's own.
using HarnessText = std::variant<std::string, std::vector<int32_t>>;

struct HarnessRequest {
  HarnessText context, continuation;
  std::string place;  // "requests.jsonl:3", for messages
};

/// One request a line: {"context": ..., "continuation": ...}, each a string or a list of token ids; further
/// fields are left alone, and so are blank lines. `name` is the file's. Throws Error (kUsage) naming the
/// line.
std::vector<HarnessRequest> read_harness_requests(std::string_view text, const std::string& name);

/// Which tokens a text has: with those that the tokenizer puts around every text, as HFLM of 0.4.13 does, or
/// its own only, as 0.4.8 does, and 0.4.13 for add_bos_token=False.
enum class HarnessEncoding { kWithAdded, kPlain };

/// Encodes a request as HFLM does: white space at the end of the context belongs to the continuation, both
/// are encoded together, and an empty context is the token that begins texts, or else the one that ends them.
/// A text that begins with that token gets no further ones. Of a context that is too long for `longest` input
/// tokens, the end is kept. `tokenizer` may be null for tokens. Throws Error (kUsage) for a continuation
/// without tokens or with too many of them, and for tokens that a vocabulary of `vocab_size` lacks.
Continuation encode_request(const HarnessRequest& request, const Tokenizer* tokenizer, int64_t vocab_size,
                            int64_t longest, HarnessEncoding encoding = HarnessEncoding::kWithAdded);

}  // namespace tycho
