// Prints and cuts texts as Python does.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/templates/rendering.h"
#include "trainer/data/templates/value.h"

namespace tycho::jinja {

/// Python's str.isspace for one character.
bool is_space(uint32_t code);
/// Python's str.strip: removes white space, or any of `chars`, from the given sides.
enum class Sides { kBoth, kLeft, kRight };
std::string_view stripped(std::string_view text, Sides sides);
std::string_view stripped_of(std::string_view text, std::string_view chars, Sides sides);
/// Splits UTF-8 text into its characters.
std::vector<std::string_view> characters_of(std::string_view text, Rendering& rendering);
/// Returns Python's repr of a float: "1.0", "1e+16", "nan".
std::string float_text(double number);
/// Return Python's str() and repr().
std::string printed(const Value& value, Rendering& rendering);
std::string represented(const Value& value, Rendering& rendering);
/// Python's upper, lower, capitalize and title for ASCII. Throws Error for other characters.
enum class Case { kUpper, kLower, kCapitalized, kTitle };
std::string in_case(std::string_view text, Case wanted, Rendering& rendering);
/// Python's str.replace(): at most `most` times, or everywhere if `most` is negative.
std::string replaced(std::string_view text, std::string_view old, std::string_view by, int64_t most,
                     Rendering& rendering);
/// Python's str.splitlines().
std::vector<std::string_view> lines_of(std::string_view text, Rendering& rendering);

}  // namespace tycho::jinja
