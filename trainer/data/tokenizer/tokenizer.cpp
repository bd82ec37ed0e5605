// Encoding: added tokens are cut out first, the text between them goes through pieces and merges.
#include "trainer/data/tokenizer/tokenizer.h"

#include "trainer/base/error.h"
#include "trainer/data/tokenizer/bpe_tokenizer.h"

namespace tycho {
namespace {

std::string normalized_by(const std::vector<NormalForm>& normalizers, std::string_view text) {
  std::string result(text);
  for (const NormalForm form : normalizers) result = normalized(form, result);
  return result;
}

/// Those that are searched in the text as it is, or, normalised themselves, in the normalised one.
std::vector<AddedToken> select(const TokenizerParts& parts, bool in_normalized) {
  std::vector<AddedToken> selected;
  for (AddedToken token : parts.added) {
    if (token.normalized != in_normalized) continue;
    if (in_normalized) token.content = normalized_by(parts.normalizers, token.content);
    selected.push_back(std::move(token));
  }
  return selected;
}

/// Calls on_text for what lies between the matches and on_token for each match, in order.
template <class OnText, class OnToken>
void split_at_tokens(const AddedTokenMatcher& matcher, std::string_view text, OnText on_text,
                     OnToken on_token) {
  size_t position = 0;
  while (position < text.size()) {
    const auto match = matcher.find(text, position);
    const size_t end = match ? match->begin : text.size();
    if (end > position) on_text(text.substr(position, end - position));
    if (!match) return;
    on_token(match->id);
    position = match->end;
  }
}

/// Whether a cut between a letter or digit and white space can fall inside the token.
bool straddles_words(const AddedToken& token) {
  return token.lstrip || token.rstrip || find_safe_cut(token.content, 0) != std::string_view::npos;
}

}  // namespace

BpeTokenizer::BpeTokenizer(TokenizerParts parts)
    : ids_(std::move(parts.ids)),
      token_bytes_(std::move(parts.token_bytes)),
      special_(token_bytes_.size()),
      normalizers_(parts.normalizers),
      raw_added_(select(parts, false)),
      normalized_added_(select(parts, true)),
      model_(std::move(parts.model)),
      pattern_(parts.pattern),
      add_prefix_space_(parts.add_prefix_space),
      // Under Llama 3's pattern a mark takes newlines along, and normal forms make marks out of letters.
      splits_at_words_(pattern_ != SplitPattern::kNone && !add_prefix_space_ &&
                       (normalizers_.empty() || pattern_ == SplitPattern::kGpt2)),
      text_begin_(std::move(parts.text_begin)),
      text_end_(std::move(parts.text_end)),
      hash_(std::move(parts.hash)) {
  for (const AddedToken& token : parts.added) {
    special_[static_cast<size_t>(token.id)] = token.special;
    if (straddles_words(token)) splits_at_words_ = false;
  }
}

std::vector<int32_t> BpeTokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size() / 3 + 8);
  BpeModel::CacheLease cache(model_);
  const auto add = [&](int32_t id) { ids.push_back(id); };
  const auto plain = [&](std::string_view part) { encode_plain(part, *cache, ids); };
  const auto between = [&](std::string_view part) {
    if (normalizers_.empty()) return split_at_tokens(normalized_added_, part, plain, add);
    split_at_tokens(normalized_added_, normalized_by(normalizers_, part), plain, add);
  };
  split_at_tokens(raw_added_, text, between, add);
  return ids;
}

void BpeTokenizer::encode_plain(std::string_view text, PieceCache& cache, std::vector<int32_t>& out) const {
  std::string prefixed;
  if (add_prefix_space_ && text[0] != ' ') {
    prefixed.append(" ").append(text);
    text = prefixed;
  }
  PieceScanner scanner(pattern_, text);
  for (std::string_view piece = scanner.next(); !piece.empty(); piece = scanner.next())
    model_.encode_piece(piece, cache, out);
}

std::string BpeTokenizer::decode(const std::vector<int32_t>& ids) const {
  std::string text;
  for (const int32_t id : ids) text += token_bytes(id);
  return text;
}

std::string BpeTokenizer::token_bytes(int32_t id) const {
  TYCHO_CHECK(id >= 0 && id < size(), "[tokenizer] token {} is outside the vocabulary of {}", id, size());
  return token_bytes_[static_cast<size_t>(id)];
}

bool BpeTokenizer::is_special(int32_t id) const {
  return id >= 0 && id < size() && special_[static_cast<size_t>(id)];
}

int32_t BpeTokenizer::find(std::string_view token) const {
  const auto found = ids_.find(token);
  return found == ids_.end() ? -1 : found->second;
}

}  // namespace tycho
