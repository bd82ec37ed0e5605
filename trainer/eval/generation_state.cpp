// The order of choosing: penalties, then the draw, then what the token means for the text.
#include "trainer/eval/generation_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/base/random/philox.h"

namespace tycho {
namespace {

/// Returns a uniform number in [0, 1) for one token of one sample.
double uniform_draw(uint64_t seed, int64_t sample, int64_t token) {
  const uint64_t key = stream_key(seed, fmt::format("generate {}", sample));
  const auto words = philox(key, static_cast<uint64_t>(token));
  return (static_cast<double>(words[0]) + static_cast<double>(words[1]) * 0x1p-32) * 0x1p-32;
}

}  // namespace

GenerationState::GenerationState(const GenerateOptions& options, const Tokenizer* tokenizer,
                                 const std::vector<int32_t>& prompt, int64_t sample, int64_t limit,
                                 int64_t vocab_size, const std::function<void(const std::string&)>& emit)
    : options_(options),
      tokenizer_(tokenizer),
      sample_(sample),
      limit_(limit),
      seen_(static_cast<size_t>(vocab_size)),
      stream_(options.stop, [this, emit](const std::string& piece) {
        result_.text += piece;
        emit(piece);
      }) {
  for (const int32_t id : prompt) seen_[static_cast<size_t>(id)] = true;
}

std::optional<int32_t> GenerationState::next(std::vector<float> logits) {
  const std::vector<float> models_own = options_.logprobs ? logits : std::vector<float>();
  if (options_.sampling.repetition_penalty != 1)
    penalise_repetition(logits, seen_, options_.sampling.repetition_penalty);
  const int32_t id =
      sample_token(logits, options_.sampling, uniform_draw(options_.seed, sample_, result_.tokens));
  seen_[static_cast<size_t>(id)] = true;
  if (options_.logprobs) {
    result_.token_ids.push_back(id);
    result_.logprobs.push_back(log_probability(models_own, id));
  }
  if (ends_with(id)) return std::nullopt;
  return id;
}

bool GenerationState::writes(int32_t id) const {
  return id < tokenizer_->size() && !tokenizer_->is_special(id) &&
         std::ranges::find(options_.eos_ids, id) == options_.eos_ids.end();
}

bool GenerationState::ends_with(int32_t id) {
  if (tokenizer_ != nullptr) {
    if (!writes(id) && !options_.ignore_eos) {
      result_.finish = Finish::kEos;
      stream_.finish();
      return true;
    }
    if (writes(id) && stream_.add(tokenizer_->token_bytes(id))) {
      result_.tokens += 1;
      result_.finish = Finish::kStop;
      return true;
    }
  }
  result_.tokens += 1;
  if (result_.tokens < limit_) return false;
  stream_.finish();
  return true;
}

}  // namespace tycho
