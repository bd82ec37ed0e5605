// One text that a model writes: which token comes next, what is read of it, when it ends. Torch-free.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/fields.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/generate/sampling.h"
#include "trainer/generate/text_stream.h"

namespace tycho {

struct GenerateOptions {
  SamplingConfig sampling;
  int64_t max_tokens = 128;
  std::vector<std::string> stop;  // text ends before the first of these; none is empty
  bool ignore_eos = false;        // a special token does not end the text; it writes nothing
  uint64_t seed = 0;
  bool logprobs = false;
};

/// Why a text ended: a stop string, max_tokens or the model's longest sequence, a special token.
enum class Finish { kStop, kLength, kEos };
constexpr EnumNames<Finish, 3> enum_names(Finish) {
  return {{{"stop", Finish::kStop}, {"length", Finish::kLength}, {"eos", Finish::kEos}}};
}

struct Generated {
  std::string text;    // without the stop string
  int64_t tokens = 0;  // chosen, those of the stop string counted, the special token at the end not
  Finish finish = Finish::kLength;
  // With logprobs: every token that was chosen, a special one at the end too, and the logarithm of the
  // probability that the model itself gave it, whatever temperature and penalties made of it.
  std::vector<int32_t> token_ids;
  std::vector<double> logprobs;
};

class WrittenText {
 public:
  /// `limit`: tokens at most, one or more. `vocab_size`: of the model. Without a tokenizer no text is
  /// emitted, and only the limit ends it. What is referred to outlives this.
  WrittenText(const GenerateOptions& options, const Tokenizer* tokenizer, const std::vector<int32_t>& prompt,
              int64_t sample, int64_t limit, int64_t vocab_size,
              const std::function<void(const std::string&)>& emit);
  WrittenText(const WrittenText&) = delete;

  /// Chooses the token that comes next from the model's logits; nothing when the text has ended with it.
  std::optional<int32_t> next(std::vector<float> logits);
  const Generated& result() const { return result_; }

 private:
  /// Whether the text ends with this token.
  bool ends_with(int32_t id);
  bool writes(int32_t id) const { return id < tokenizer_->size() && !tokenizer_->is_special(id); }

  const GenerateOptions& options_;
  const Tokenizer* tokenizer_;
  int64_t sample_, limit_;
  std::vector<bool> seen_;  // tokens of the prompt and of the text
  Generated result_;
  TextStream stream_;
};

}  // namespace tycho
