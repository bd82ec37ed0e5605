// Tokens are sorted: a match is found by narrowing, byte by byte, the range of tokens that begin like the
// text.
#include "trainer/data/tokenizer/added_tokens.h"

#include <algorithm>

#include "trainer/base/text/utf8.h"
#include "trainer/data/tokenizer/patterns/unicode_categories.h"

namespace tycho {
namespace {

constexpr size_t kFewFirstBytes = 1;

uint32_t code_at(std::string_view text, size_t position, size_t& length) {
  uint32_t code;
  length = decode_utf8(text.data() + position, text.size() - position, code);
  return code;
}

/// Returns the start of the character that ends at `position`.
size_t start_before(std::string_view text, size_t position) {
  for (size_t length = 2; length <= 4 && length <= position; ++length) {
    size_t got;
    code_at(text.substr(0, position), position - length, got);
    if (got == length) return position - length;
  }
  return position - 1;
}

/// True for \w of Rust's regular expressions: \p{Alphabetic} \p{M} \p{Nd} \p{Pc} \p{Join_Control}.
bool is_word(uint32_t code) {
  const auto category = static_cast<Category>(categories()[code]);
  if (category >= Category::kLu && category <= Category::kNl) return true;
  return category == Category::kPc || code == 0x200C || code == 0x200D ||
         (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
         (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const AddedToken& t) { return t.content.empty(); });
  std::stable_sort(tokens_.begin(), tokens_.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.content < b.content; });
  for (uint32_t i = 0; i < tokens_.size(); ++i) {
    Bucket& bucket = buckets_[static_cast<uint8_t>(tokens_[i].content[0])];
    if (bucket.end == 0) {
      bucket.begin = i;
      first_bytes_ += tokens_[i].content[0];
    }
    bucket.end = i + 1;
  }
  if (first_bytes_.size() > kFewFirstBytes) first_bytes_.clear();
}

const AddedToken* AddedTokenMatcher::longest_at(std::string_view text, size_t position) const {
  const Bucket bucket = buckets_[static_cast<uint8_t>(text[position])];
  const AddedToken* begin = tokens_.data() + bucket.begin;
  const AddedToken* end = tokens_.data() + bucket.end;
  const AddedToken* longest = nullptr;
  // Tokens in [begin, end) begin with the first `depth` bytes of the text.
  for (size_t depth = 1; begin < end; ++depth) {
    // Among equal contents the last one in the file wins.
    while (begin < end && begin->content.size() == depth) longest = begin++;
    if (begin == end || position + depth == text.size()) break;
    const auto byte = static_cast<uint8_t>(text[position + depth]);
    const auto at_depth = [depth](const AddedToken& token) {
      return static_cast<uint8_t>(token.content[depth]);
    };
    begin = std::partition_point(begin, end, [&](const AddedToken& token) { return at_depth(token) < byte; });
    end = std::partition_point(begin, end, [&](const AddedToken& token) { return at_depth(token) == byte; });
  }
  return longest;
}

AddedTokenMatcher::Match AddedTokenMatcher::find(std::string_view text, size_t from) const {
  if (tokens_.empty()) return {0, 0, nullptr};
  for (size_t i = from; i < text.size(); ++i) {
    if (!first_bytes_.empty()) {
      i = text.find(first_bytes_[0], i);
      if (i == std::string_view::npos) break;
    }
    const AddedToken* token = longest_at(text, i);
    if (token != nullptr) return {i, i + token->content.size(), token};
  }
  return {0, 0, nullptr};
}

bool AddedTokenMatcher::stands_alone(std::string_view text, size_t begin, size_t end) {
  size_t length;
  const bool word_before = begin > 0 && is_word(code_at(text, start_before(text, begin), length));
  const bool word_after = end < text.size() && is_word(code_at(text, end, length));
  return !word_before && !word_after;
}

size_t AddedTokenMatcher::skip_spaces(std::string_view text, size_t position) {
  size_t length;
  while (position < text.size() && is_white_space(code_at(text, position, length))) position += length;
  return position;
}

size_t AddedTokenMatcher::skip_spaces_back(std::string_view text, size_t position, size_t limit) {
  while (position > limit) {
    const size_t start = start_before(text, position);
    size_t length;
    if (!is_white_space(code_at(text, start, length))) break;
    position = start;
  }
  return position;
}

}  // namespace tycho
