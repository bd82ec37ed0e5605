// Tokens that are recognised in the text before anything is split: "<|endoftext|>".
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

/// As tokenizer.json lists them.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool lstrip = false, rstrip = false;  // takes the white space before or after it along
  bool normalized = false;              // searched after those that are not
  bool special = false;
};

/// Finds the leftmost, then longest, of some added tokens. Immutable.
class AddedTokenMatcher {
 public:
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens);

  struct Match {
    size_t begin, end;
    int32_t id;
  };
  /// The first match at or after `from`; white space that it takes along reaches back to `from` at most.
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  const AddedToken* match_at(std::string_view text, size_t position) const;

  std::vector<AddedToken> tokens_;  // by first byte, then longest first
  struct Bucket {
    uint32_t begin = 0, end = 0;  // in tokens_
    size_t shared = 0;            // bytes that all of them start with
  };
  std::array<Bucket, 256> buckets_;
};

}  // namespace tycho
