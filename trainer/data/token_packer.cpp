// The buffer never holds a whole sample, so each token is copied once.
#include "trainer/data/token_packer.h"

#include <algorithm>

namespace tycho {

TokenPacker::TokenPacker(Rules rules, std::function<void(std::span<const int32_t>)> emit)
    : rules_(std::move(rules)), emit_(std::move(emit)) {}

void TokenPacker::add(const std::vector<int32_t>& tokens, bool begins, bool ends) {
  if (begins) {
    skips_document_ = false;
    append(rules_.bos);
  }
  append(tokens);
  if (ends) append(rules_.eos);
}

void TokenPacker::append(std::span<const int32_t> tokens) {
  num_tokens_ += static_cast<int64_t>(tokens.size());
  const auto wanted = static_cast<size_t>(rules_.sample_tokens);
  while (!tokens.empty() && !skips_document_) {
    const auto part = tokens.first(std::min(tokens.size(), wanted - buffer_.size()));
    buffer_.insert(buffer_.end(), part.begin(), part.end());
    tokens = tokens.subspan(part.size());
    if (buffer_.size() < wanted) return;
    emit_(buffer_);
    buffer_.clear();
    ++num_samples_;
    skips_document_ = rules_.no_wrap;
  }
}

}  // namespace tycho
