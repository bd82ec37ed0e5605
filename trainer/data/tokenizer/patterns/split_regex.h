// The regular expressions by which a tokenizer.json splits text, with the meaning that Oniguruma gives them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/tokenizer/patterns/code_set.h"

namespace tycho {

/// Program for a backtracking machine.
struct RegexProgram {
  enum class Op : uint8_t {
    kSet,         // one character of sets[x]
    kRepeat,      // characters of sets[x], `least` to `most`, as many as the rest allows
    kRepeatLazy,  // characters of sets[x], `least` to `most`, as few as the rest allows
    kRepeatAll,   // characters of sets[x], `least` to `most`, as many as there are, and no fewer
    kFork,        // continues at x, and if that fails at y
    kJump,        // continues at x
    kMark,        // stores the position in slot x
    kMoved,       // fails if the position equals slot x
    kAhead,       // the program from here to kMatch must match here; then continues at x
    kNotAhead,    // must not match
    kAtomic,      // must match; only its first match counts; then continues at x
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

/// Compiles a pattern. Throws Error (kUnusable) "[regex] ..." that names what is malformed or not supported
/// and where. Supported: literals, sets, \p{..}, \s \d \w \h, groups, (?i:..) of ASCII letters, alternatives,
/// all repetitions, lookahead, (?>..), anchors ^ $ \A \z \Z.
RegexProgram compile_regex(std::string_view pattern);

/// Immutable; usable from several threads.
class SplitRegex {
 public:
  explicit SplitRegex(std::string_view pattern) : pattern_(pattern), program_(compile_regex(pattern)) {}

  struct Match {
    size_t begin, end;
  };
  /// Cost of searching texts one after the other. find() throws BadRow when the steps are too many for the
  /// length of the texts.
  struct Effort {
    uint64_t steps = 0;
    uint64_t bytes = 0;  // bytes of the texts before the current one
  };
  /// Returns the leftmost match at or after `from`; the first alternative that leads to one wins. Bytes that
  /// are not UTF-8 count as U+FFFD. The caller adds the text to effort.bytes when it is done with it.
  std::optional<Match> find(std::string_view text, size_t from, Effort& effort) const;
  const std::string& pattern() const { return pattern_; }

 private:
  std::string pattern_;
  RegexProgram program_;
};

}  // namespace tycho
