// Finds the known names that a misspelt one is close to: "did you mean".
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

/// Returns up to three of `known`, closest first, by edit distance that counts swapped neighbours once and
/// ignores case. Leaves out names of which more than a third differs, unless whole words of one are the
/// other.
std::vector<std::string> nearest(std::string_view given, const std::vector<std::string>& known);

/// Returns "; did you mean \"a\" or \"b\"?", or "" when nothing is close.
std::string did_you_mean(std::string_view given, const std::vector<std::string>& known);

}  // namespace tycho
