// Splits a normalised text into the pieces that a BPE model merges within: the pre_tokenizer of a
// tokenizer.json.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/tokenizer/patterns/piece_scanner.h"
#include "trainer/data/tokenizer/patterns/split_regex.h"

namespace tycho {

/// One step of a pre_tokenizer. Fields that its kind does not use stay empty.
struct PreTokenizerStep {
  enum class Kind {
    kPattern,      // one of the patterns written out by hand, all pieces kept
    kRegex,        // Split by a regular expression
    kLiteral,      // Split by a text
    kDigits,       // numbers apart from the rest
    kPunctuation,  // punctuation apart from the rest
    kWhitespace,   // cuts at white space and removes it
    kPrefixSpace,  // puts a space before a piece that does not begin with one
    kByteLevel,    // later steps see bytes as the characters that stand for them
    kMetaspace,    // spaces become `literal`
    kWords  // cuts before `literal` unless it follows another: changes no ids where no token spans such a cut
  };
  /// Treatment of a match: its own piece, removed, part of the piece before or after, or joined with adjacent
  /// matches.
  enum class Behavior { kIsolated, kRemoved, kWithPrevious, kWithNext, kContiguous };
  enum class Prepend { kAlways, kFirst, kNever };

  Kind kind = Kind::kPattern;
  SplitPattern pattern = SplitPattern::kNone;
  std::shared_ptr<const SplitRegex> regex;
  std::string literal;
  Behavior behavior = Behavior::kIsolated;
  bool invert = false;                // kRegex, kLiteral: text between matches counts as a match
  Prepend prepend = Prepend::kNever;  // kMetaspace: puts `literal` before pieces that begin differently
};

/// Immutable; usable from several threads.
class PreTokenizer {
 public:
  explicit PreTokenizer(std::vector<PreTokenizerStep> steps) : steps_(std::move(steps)) {}

  using Sink = std::function<void(std::string_view)>;
  /// Calls `sink` with the pieces of a text that is not empty, in order; they are valid during the call.
  /// `first`: the text is the beginning of the encoded text. Throws BadRow where a regular expression takes
  /// too long.
  void cut(std::string_view text, bool first, const Sink& sink) const;

  const std::vector<PreTokenizerStep>& steps() const { return steps_; }
  /// Returns the pattern that cuts bytes, if this pre-tokenizer does nothing else; else nullptr.
  const SplitPattern* only_pattern() const;

 private:
  struct Work;
  void run(size_t step, std::string_view text, bool first, Work& work) const;

  std::vector<PreTokenizerStep> steps_;
};

}  // namespace tycho
