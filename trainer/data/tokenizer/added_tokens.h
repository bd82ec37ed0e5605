// Tokens that are recognised in the text before it is split: "<|endoftext|>".
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

/// Token in the list `added_tokens` of tokenizer.json.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool lstrip = false, rstrip = false;  // includes the white space before or after the token
  bool single_word = false;             // matches only where no letter, digit or underscore is adjacent
  bool normalized = false;              // searched in the normalised text, after tokens that are not
  bool special = false;
  bool verbatim = false;    // with `normalized`: the token itself is not normalised
  bool stays_text = false;  // found in texts, and left to the model (split_special_tokens)
};

/// Cuts added tokens out of texts. Immutable.
class AddedTokenMatcher {
 public:
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

  /// Calls on_text(part, begin) for each part between the matches and on_token(id) for each match, in order.
  /// The leftmost match wins, and among these the longest. Does not call on_text for empty parts.
  template <class OnText, class OnToken>
  void split(std::string_view text, OnText on_text, OnToken on_token) const;

 private:
  struct Match {
    size_t begin, end;
    const AddedToken* token;  // null: none
  };
  Match find(std::string_view text, size_t from) const;
  const AddedToken* longest_at(std::string_view text, size_t position) const;
  static bool stands_alone(std::string_view text, size_t begin, size_t end);
  static size_t skip_spaces(std::string_view text, size_t position);
  static size_t skip_spaces_back(std::string_view text, size_t position, size_t limit);

  std::vector<AddedToken> tokens_;  // sorted by content
  struct Bucket {
    uint32_t begin = 0, end = 0;  // in tokens_
  };
  std::array<Bucket, 256> buckets_;  // by first byte
  std::string first_bytes_;          // first bytes of all tokens, if they are few; else ""
};

template <class OnText, class OnToken>
void AddedTokenMatcher::split(std::string_view text, OnText on_text, OnToken on_token) const {
  size_t position = 0;
  for (size_t from = 0; from < text.size();) {
    const Match match = find(text, from);
    if (match.token == nullptr) break;
    from = match.end;
    if (match.token->stays_text) continue;
    if (match.token->single_word && !stands_alone(text, match.begin, match.end)) continue;
    size_t begin = match.begin, end = match.end;
    // White space that an earlier match has included stays with that match.
    if (match.token->lstrip) begin = skip_spaces_back(text, begin, position);
    if (match.token->rstrip) end = skip_spaces(text, end);
    if (position < begin) on_text(text.substr(position, begin - position), position);
    on_token(match.token->id);
    position = from = end;
  }
  if (position < text.size()) on_text(text.substr(position), position);
}

}  // namespace tycho
