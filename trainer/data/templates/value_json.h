// Writes values as JSON, like Python's json.dumps.
#pragma once
#include <optional>
#include <string>

#include "trainer/data/templates/rendering.h"
#include "trainer/data/templates/value.h"

namespace tycho::jinja {

struct JsonStyle {
  bool ensure_ascii = false;
  std::optional<std::string> indent;  // indent of one level; without it, all is one line
  std::string item_separator = ", ", key_separator = ": ";
  bool sort_keys = false;
};

/// Returns the value as JSON. Throws Error for values without a JSON form: undefined ones, functions,
/// generators.
std::string json_text(const Value& value, const JsonStyle& style, Rendering& rendering);

}  // namespace tycho::jinja
