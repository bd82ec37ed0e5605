// The text in one line of a JSONL file.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

/// Longest line of JSONL; a file with a longer one is not taken for JSONL.
inline constexpr size_t kMostLineBytes = size_t{256} << 20;

/// One field of a line.
struct JsonLine {
  std::string error;  // why it is not JSON; "" when it is
  size_t error_at = 0;
  std::string kind, field_kind;     // "an object", "a string"; field_kind is "" when there is no such field
  std::optional<std::string> text;  // value of the field, if it is a string
  std::vector<std::string> names;   // first fields of the object
};
JsonLine read_json_line(std::string_view line, const std::string& field);

/// Returns the string `field` of the object in the line. `place` is "file:line". Throws Error (kUnusable)
/// that says what to do for a line that is not JSON, that lacks the field, or whose field is no string.
std::string text_of_json_line(std::string_view line, const std::string& field, const std::string& place);

}  // namespace tycho
