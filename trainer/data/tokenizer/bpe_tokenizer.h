// The tokenizer that load_tokenizer makes: added tokens, pieces, merges.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "trainer/data/tokenizer/added_tokens.h"
#include "trainer/data/tokenizer/bpe.h"
#include "trainer/data/tokenizer/normalizer.h"
#include "trainer/data/tokenizer/patterns/piece_scanner.h"
#include "trainer/data/tokenizer/pre_tokenizer.h"
#include "trainer/data/tokenizer/tokenizer.h"

namespace tycho {

using TokenIds = std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>>;

/// Contents of a tokenizer file, checked.
struct TokenizerParts {
  TokenIds ids;                          // by the spelling in the file: "Ġthe"
  std::vector<std::string> token_bytes;  // by id; "" for ids without a token
  /// Bytes of those tokens that lose a space at the beginning of a text.
  std::unordered_map<int32_t, std::string> first_bytes;
  std::vector<AddedToken> added;  // tokens that are found in texts
  std::vector<int32_t> special;   // further special tokens, which are not found in texts
  BpeModel::Parts model;
  std::vector<NormalizerStep> normalizers;  // applied one after the other
  std::vector<PreTokenizerStep> pre_tokenizers;
  bool only_byte_level = false;  // the pre_tokenizer is a ByteLevel outside of a Sequence
  std::vector<int32_t> text_begin, text_end;
  TokenizerInfo info;
  std::string hash;
};

class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(TokenizerParts parts);

  std::vector<int32_t> encode(std::string_view text) const override;
  std::vector<int32_t> text_begin() const override { return text_begin_; }
  std::vector<int32_t> text_end() const override { return text_end_; }
  std::string decode(const std::vector<int32_t>& ids) const override;
  std::string token_bytes(int32_t id) const override;
  std::string first_token_bytes(int32_t id) const override;
  bool is_special(int32_t id) const override;
  int32_t find(std::string_view token) const override;
  int32_t size() const override { return static_cast<int32_t>(token_bytes_.size()); }
  bool splits_at_words() const override { return splits_at_words_; }
  const std::string& hash() const override { return hash_; }
  const TokenizerInfo& info() const override { return info_; }

 private:
  void encode_plain(std::string_view text, bool first, PieceCache& cache, std::vector<int32_t>& out) const;

  TokenIds ids_;
  std::vector<std::string> token_bytes_;
  std::unordered_map<int32_t, std::string> first_bytes_;
  std::vector<bool> special_;  // by id
  std::vector<NormalizerStep> normalizers_;
  AddedTokenMatcher raw_added_, normalized_added_;
  BpeModel model_;
  PreTokenizer pre_tokenizer_;
  const SplitPattern* pattern_;  // pattern of pre_tokenizer_, if it does nothing else; else nullptr
  bool splits_at_words_;
  std::vector<int32_t> text_begin_, text_end_;
  TokenizerInfo info_;
  std::string hash_;
};

}  // namespace tycho
