// Splits text into the pieces that BPE may not merge across, by the patterns of GPT-2, Llama 3 and Qwen2.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tycho {

/// GPT-2: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
/// Llama 3: contractions in any case, at most three digits together, and a piece may begin with one other
/// character or end with newlines. Qwen 2: like Llama 3, but each digit is one piece. kNone: the whole text
/// is one piece.
enum class SplitPattern { kNone, kGpt2, kLlama3, kQwen2 };

/// Returns the regular expression of a pattern, as tokenizer.json spells it; "" for kNone.
const char* pattern_text(SplitPattern pattern);

/// Splits a text piece by piece. A byte that is not UTF-8 counts as one visible character. The text must
/// outlive this object.
class PieceScanner {
 public:
  PieceScanner(SplitPattern pattern, std::string_view text);
  /// Returns the next piece; empty at the end. All pieces joined are the text.
  std::string_view next();

 private:
  struct Char;
  Char at(size_t position) const;
  size_t skip(size_t position, uint8_t char_class) const;
  size_t end_of_contraction(size_t position, bool any_case) const;
  size_t end_of_spaces(size_t position) const;
  size_t end_of_gpt2_piece(size_t position) const;
  size_t end_of_llama3_piece(size_t position, int max_digits) const;

  SplitPattern pattern_;
  std::string_view text_;
  size_t position_ = 0;
  const uint8_t* classes_;
};

}  // namespace tycho
