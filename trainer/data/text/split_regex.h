// The regular expressions by which a tokenizer.json splits text, with the meaning that Oniguruma gives them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/text/code_set.h"

namespace tycho {

/// A program for a backtracking machine.
struct RegexProgram {
  enum class Op : uint8_t {
    kSet,         // one character of sets[x]
    kRepeat,      // characters of sets[x], `least` to `most`, as many as the rest allows
    kRepeatLazy,  // the same, as few as the rest allows
    kRepeatAll,   // the same, as many as there are, and no fewer
    kFork,        // goes on at x, and if that fails at y
    kJump,        // goes on at x
    kMark,        // remembers the place in slot x
    kMoved,       // fails where slot x says the place is the same
    kAhead,       // the program from here to kMatch must match here; then goes on at x
    kNotAhead,    // must not match
    kAtomic,      // must match; its first match counts; then goes on at x
    kLineBegin,
    kLineEnd,
    kTextBegin,
    kTextEnd,
    kTextEndLine,  // at the end, or before a newline that ends the text
    kMatch
  };
  struct Step {
    Op op;
    uint32_t x = 0, y = 0;
    uint32_t least = 0, most = UINT32_MAX;
  };
  std::vector<Step> steps;
  std::vector<CodeSet> sets;
  uint32_t num_slots = 0;
};

/// Translates a pattern. Throws Error (kUnusable) "[regex] ..." that names what is malformed or not supported
/// and where: literals, sets, \p{..}, \s \d \w \h, groups, (?i:..) of ASCII letters, alternatives, all
/// repetitions, lookahead, (?>..), anchors ^ $ \A \z \Z are.
RegexProgram compile_regex(std::string_view pattern);

/// Immutable; usable from several threads.
class SplitRegex {
 public:
  explicit SplitRegex(std::string_view pattern) : pattern_(pattern), program_(compile_regex(pattern)) {}

  struct Match {
    size_t begin, end;
  };
  /// What searching texts one after the other has cost. Too many steps for their length end with a BadRow.
  struct Effort {
    uint64_t steps = 0;
    uint64_t bytes = 0;  // of the texts before the one that is searched
  };
  /// The leftmost match at or after `from`; the first alternative that leads to one wins. Bytes that are no
  /// UTF-8 count as U+FFFD. The caller adds the text to effort.bytes once it is done with it.
  std::optional<Match> find(std::string_view text, size_t from, Effort& effort) const;
  const std::string& pattern() const { return pattern_; }

 private:
  std::string pattern_;
  RegexProgram program_;
};

}  // namespace tycho
