// Finds the known names that a misspelt one is close to: "did you mean".
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

/// Up to three of `known`, closest first, by edit distance with swapped neighbours counted once and case
/// ignored. A name that is more than a third wrong is left out, unless whole words of one are the other.
std::vector<std::string> nearest(std::string_view given, const std::vector<std::string>& known);

/// "; did you mean \"a\" or \"b\"?", or "" when nothing is close.
std::string did_you_mean(std::string_view given, const std::vector<std::string>& known);

}  // namespace tycho
