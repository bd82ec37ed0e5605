// Finds where a long text can be cut without changing its tokens.
#pragma once
#include <cstddef>
#include <string_view>

namespace tycho {

/// Returns the first position at or after `from` where a text can be cut in two without changing the pieces
/// that tokenizers split it into, under any SplitPattern but kNone: between an ASCII letter or digit and the
/// space or newline that follows it. Returns npos when there is none.
size_t find_safe_cut(std::string_view text, size_t from);

}  // namespace tycho
