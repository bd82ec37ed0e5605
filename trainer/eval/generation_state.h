// One text that a model writes: which token comes next, what is read of it, when it ends. Torch-free.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/fields.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/eval/sampling.h"
#include "trainer/eval/text_stream.h"

namespace tycho {

struct GenerateOptions {
  SamplingConfig sampling;
  int64_t max_tokens = 128;
  std::vector<std::string> stop;  // text ends before the first of these; none is empty
  bool ignore_eos = false;        // special tokens do not end the text and add nothing to it
  std::vector<int32_t> eos_ids;   // end the text in addition to special tokens
  uint64_t seed = 0;
  bool logprobs = false;
};

/// Why a text ended: a stop string; max_tokens or the model's longest sequence; a special token.
enum class Finish { kStop, kLength, kEos };
constexpr EnumNames<Finish, 3> enum_names(Finish) {
  return {{{"stop", Finish::kStop}, {"length", Finish::kLength}, {"eos", Finish::kEos}}};
}

struct Generated {
  std::string text;    // without the stop string
  int64_t tokens = 0;  // number chosen, including those of the stop string but not a special token at the end
  Finish finish = Finish::kLength;
  // With logprobs: every chosen token, including a special one at the end, and the logarithm of the model's
  // own probability, before temperature and penalties.
  std::vector<int32_t> token_ids;
  std::vector<double> logprobs;
};

class GenerationState {
 public:
  /// `limit` is the maximum number of tokens, one or more; `vocab_size` that of the model. Without a
  /// tokenizer no text is emitted, and only the limit ends it. All referenced objects must outlive this one.
  GenerationState(const GenerateOptions& options, const Tokenizer* tokenizer,
                  const std::vector<int32_t>& prompt, int64_t sample, int64_t limit, int64_t vocab_size,
                  const std::function<void(const std::string&)>& emit);
  GenerationState(const GenerationState&) = delete;

  /// Chooses the next token from the model's logits. Returns nullopt when the text ends with it.
  std::optional<int32_t> next(std::vector<float> logits);
  const Generated& result() const { return result_; }

 private:
  /// Returns true when the text ends with this token.
  bool ends_with(int32_t id);
  bool writes(int32_t id) const;

  const GenerateOptions& options_;
  const Tokenizer* tokenizer_;
  int64_t sample_, limit_;
  std::vector<bool> seen_;  // tokens of the prompt and of the text
  Generated result_;
  TextStream stream_;
};

}  // namespace tycho
