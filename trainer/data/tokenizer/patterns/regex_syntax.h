// A regular expression as a tree.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "trainer/data/tokenizer/patterns/code_set.h"

namespace tycho {

struct RegexNode {
  enum class Kind : uint8_t {
    kSet,       // one character
    kSequence,  // all children in order
    kChoice,    // between children: the first one that leads to a match
    kRepeat,    // the one child, repeated
    kAhead,     // the child matches here
    kNotAhead,
    kAtomic,
    kAnchor
  };
  enum class Repeat : uint8_t { kGreedy, kLazy, kPossessive };
  enum class Anchor : uint8_t { kLineBegin, kLineEnd, kTextBegin, kTextEnd, kTextEndLine };

  Kind kind = Kind::kSequence;
  std::vector<RegexNode> children;
  CodeSet set;
  uint32_t least = 0, most = UINT32_MAX;
  Repeat repeat = Repeat::kGreedy;
  Anchor anchor = Anchor::kTextBegin;
};

/// Parses a pattern in Oniguruma's Ruby syntax, which `tokenizers` uses. Throws Error (kUnusable) that says
/// what is malformed or not supported, and at which byte.
RegexNode parse_regex(std::string_view pattern);

}  // namespace tycho
