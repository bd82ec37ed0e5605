// The buffer never holds more than one sample, so each token is copied once.
#include "trainer/data/prepare/token_packer.h"

#include <algorithm>

namespace tycho {

TokenPacker::TokenPacker(Rules rules, std::function<void(std::span<const int32_t>)> emit)
    : rules_(std::move(rules)), emit_(std::move(emit)) {}

void TokenPacker::add_document(std::span<const int32_t> tokens) {
  append(rules_.bos);
  append(tokens);
  append(rules_.eos);
  drain();
}

void TokenPacker::add_part(std::span<const int32_t> tokens, bool begins, bool ends) {
  if (begins) append(rules_.bos);
  append(tokens);
  if (!tokens.empty()) drain();
  if (ends) append(rules_.eos);
}

void TokenPacker::append(std::span<const int32_t> tokens) {
  state_.num_tokens += static_cast<int64_t>(tokens.size());
  const auto wanted = static_cast<size_t>(rules_.sample_tokens);
  while (!tokens.empty()) {
    const auto part = tokens.first(std::min(tokens.size(), wanted - state_.rest.size()));
    state_.rest.insert(state_.rest.end(), part.begin(), part.end());
    tokens = tokens.subspan(part.size());
    if (state_.rest.size() < wanted || rules_.no_wrap) return;
    emit_sample();
  }
}

/// Emits a full buffer. Without wrapping, a full buffer waits for this call, and tokens added beyond it were
/// dropped.
void TokenPacker::drain() {
  if (state_.rest.size() == static_cast<size_t>(rules_.sample_tokens)) emit_sample();
}

void TokenPacker::emit_sample() {
  emit_(state_.rest);
  state_.rest.clear();
  ++state_.num_samples;
}

}  // namespace tycho
