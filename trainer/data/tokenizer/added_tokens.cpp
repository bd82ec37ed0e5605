// A table by first byte, and one comparison of what its tokens share, rule out nearly every position of a
// text.
#include "trainer/data/tokenizer/added_tokens.h"

#include <algorithm>

#include "trainer/data/text/unicode_classes.h"
#include "trainer/data/text/utf8.h"

namespace tycho {
namespace {

bool is_space(std::string_view text, size_t position, size_t& length) {
  uint32_t code;
  length = decode_utf8(text.data() + position, text.size() - position, code);
  return char_classes()[code] == static_cast<uint8_t>(CharClass::kSpace);
}

size_t skip_spaces(std::string_view text, size_t position) {
  size_t length;
  while (position < text.size() && is_space(text, position, length)) position += length;
  return position;
}

size_t skip_spaces_back(std::string_view text, size_t position, size_t limit) {
  while (position > limit) {
    size_t start = position - 1;
    while (start > limit && (text[start] & 0xC0) == 0x80) --start;
    size_t length;
    if (!is_space(text, start, length) || start + length != position) break;
    position = start;
  }
  return position;
}

size_t shared_prefix(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const AddedToken& t) { return t.content.empty(); });
  std::stable_sort(tokens_.begin(), tokens_.end(), [](const AddedToken& a, const AddedToken& b) {
    const auto x = static_cast<uint8_t>(a.content[0]), y = static_cast<uint8_t>(b.content[0]);
    return x != y ? x < y : a.content.size() > b.content.size();
  });
  for (uint32_t i = 0; i < tokens_.size(); ++i) {
    const std::string& content = tokens_[i].content;
    Bucket& bucket = buckets_[static_cast<uint8_t>(content[0])];
    const bool first = bucket.end == 0;
    if (first) bucket.begin = i;
    bucket.shared =
        first ? content.size() : std::min(bucket.shared, shared_prefix(content, tokens_[i - 1].content));
    bucket.end = i + 1;
  }
}

const AddedToken* AddedTokenMatcher::match_at(std::string_view text, size_t position) const {
  const Bucket& bucket = buckets_[static_cast<uint8_t>(text[position])];
  if (bucket.end == 0) return nullptr;
  const std::string_view rest = text.substr(position);
  const std::string_view shared = std::string_view(tokens_[bucket.begin].content).substr(0, bucket.shared);
  if (!rest.starts_with(shared)) return nullptr;
  for (uint32_t i = bucket.begin; i < bucket.end; ++i)
    if (rest.starts_with(tokens_[i].content)) return &tokens_[i];
  return nullptr;
}

std::optional<AddedTokenMatcher::Match> AddedTokenMatcher::find(std::string_view text, size_t from) const {
  if (tokens_.empty()) return std::nullopt;
  for (size_t i = from; i < text.size(); ++i) {
    const AddedToken* token = match_at(text, i);
    if (token == nullptr) continue;
    const size_t begin = token->lstrip ? skip_spaces_back(text, i, from) : i;
    const size_t end = i + token->content.size();
    return Match{begin, token->rstrip ? skip_spaces(text, end) : end, token->id};
  }
  return std::nullopt;
}

}  // namespace tycho
