// Encodes: cuts out added tokens first, then splits the text between them into pieces and merges these.
#include "trainer/data/tokenizer/bpe_tokenizer.h"

#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/data/sources/safe_cut.h"

namespace tycho {
namespace {

/// Returns the added tokens to search in the text, or, normalised themselves, in the normalised text.
std::vector<AddedToken> select(const TokenizerParts& parts, bool in_normalized) {
  std::vector<AddedToken> selected;
  for (AddedToken token : parts.added) {
    if (token.normalized != in_normalized) continue;
    if (in_normalized && !token.verbatim) token.content = normalized(parts.normalizers, token.content);
    selected.push_back(std::move(token));
  }
  return selected;
}

bool only_forms(const std::vector<NormalizerStep>& steps) {
  return std::all_of(steps.begin(), steps.end(),
                     [](const NormalizerStep& step) { return step.kind == NormalizerStep::Kind::kForm; });
}

/// True if a cut between a letter or digit and white space can be inside the token.
bool straddles_words(const AddedToken& token) {
  return token.lstrip || token.rstrip || token.single_word ||
         find_safe_cut(token.content, 0) != std::string_view::npos;
}

}  // namespace

BpeTokenizer::BpeTokenizer(TokenizerParts parts)
    : ids_(std::move(parts.ids)),
      token_bytes_(std::move(parts.token_bytes)),
      first_bytes_(std::move(parts.first_bytes)),
      special_(token_bytes_.size()),
      normalizers_(parts.normalizers),
      raw_added_(select(parts, false)),
      normalized_added_(select(parts, true)),
      model_(std::move(parts.model)),
      pre_tokenizer_(std::move(parts.pre_tokenizers)),
      pattern_(pre_tokenizer_.only_pattern()),
      // Under Llama 3's pattern a punctuation mark includes newlines after it, and normal forms turn letters
      // into marks.
      splits_at_words_(
          pattern_ != nullptr && *pattern_ != SplitPattern::kNone &&
          (normalizers_.empty() || (*pattern_ == SplitPattern::kGpt2 && only_forms(normalizers_)))),
      text_begin_(std::move(parts.text_begin)),
      text_end_(std::move(parts.text_end)),
      info_(std::move(parts.info)),
      hash_(std::move(parts.hash)) {
  for (const int32_t id : parts.special) special_[static_cast<size_t>(id)] = true;
  for (const AddedToken& token : parts.added) {
    if (token.special) special_[static_cast<size_t>(token.id)] = true;
    if (straddles_words(token)) splits_at_words_ = false;
  }
}

std::vector<int32_t> BpeTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3 + 8);
  BpeModel::CacheLease cache(model_);
  const auto add = [&](int32_t id) { ids.push_back(id); };
  raw_added_.split(
      text,
      [&](std::string_view raw, size_t raw_begin) {
        const std::string changed = normalizers_.empty() ? std::string() : normalized(normalizers_, raw);
        normalized_added_.split(
            normalizers_.empty() ? raw : changed,
            [&](std::string_view part, size_t begin) {
              encode_plain(part, raw_begin + begin == 0, *cache, ids);
            },
            add);
      },
      add);
  return ids;
}

void BpeTokenizer::encode_plain(std::string_view text, bool first, PieceCache& cache,
                                std::vector<int32_t>& out) const {
  if (pattern_ == nullptr)
    return pre_tokenizer_.cut(text, first,
                              [&](std::string_view piece) { model_.encode_piece(piece, cache, out); });
  PieceScanner scanner(*pattern_, text);
  for (std::string_view piece = scanner.next(); !piece.empty(); piece = scanner.next())
    model_.encode_piece(piece, cache, out);
}

std::string BpeTokenizer::decode(const std::vector<int32_t>& ids) const {
  std::string text;
  for (size_t i = 0; i < ids.size(); ++i) text += i == 0 ? first_token_bytes(ids[i]) : token_bytes(ids[i]);
  return text;
}

std::string BpeTokenizer::token_bytes(int32_t id) const {
  TYCHO_CHECK(id >= 0 && id < size(), "[tokenizer] token {} is outside the vocabulary of {}", id, size());
  return token_bytes_[static_cast<size_t>(id)];
}

std::string BpeTokenizer::first_token_bytes(int32_t id) const {
  const auto found = first_bytes_.find(id);
  return found == first_bytes_.end() ? token_bytes(id) : found->second;
}

bool BpeTokenizer::is_special(int32_t id) const {
  return id >= 0 && id < size() && special_[static_cast<size_t>(id)];
}

int32_t BpeTokenizer::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? -1 : found->second;
}

}  // namespace tycho
