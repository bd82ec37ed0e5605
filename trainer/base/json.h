// Reading and writing config structs as JSON, through their fields().
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tycho {

using Json = nlohmann::ordered_json;

/// Text with sorted keys and shortest round-trip numbers: what is hashed, compared across ranks and saved.
std::string canonical_json(const Json& json);

/// Parses bounded text (depth <= 64). Throws Error (kUnusable) "[place] ... at byte N".
Json parse_json(std::string_view text, std::string_view place);

}  // namespace tycho
