// JSON as values and as text. json_reader.h, json_writer.h and schema.h connect it to config structs.
#pragma once
// Part of precompiled headers, which ccache keeps: GCC takes the file for another one if only its time has
// changed since, and would read it twice.
#ifndef TYCHO_BASE_JSON_H
#define TYCHO_BASE_JSON_H
#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

// json.hpp defines literals of nlohmann::json. They would make every source instantiate the parser of that
// type: a second for each. Nothing here is of that type, so it is declared to be this before json.hpp can say
// more of it.
template <>
class nlohmann::basic_json<> {
 public:
  static basic_json parse(const char* begin, const char* end);
  struct json_pointer {
    explicit json_pointer(const std::string& text);
  };
};

#include <nlohmann/json.hpp>

// Compiled once, in json.cpp.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace tycho {

/// JSON that keeps the order of keys. Looking up a key takes linear time, so do not use it for tables of many
/// thousand keys.
using Json = nlohmann::ordered_json;
/// JSON that sorts keys and finds them quickly. Same as nlohmann::json except for the type of binary values,
/// which is unused.
using SortedJson = nlohmann::basic_json<std::map, std::vector, std::string, bool, int64_t, uint64_t, double,
                                        std::allocator, nlohmann::adl_serializer, std::vector<char>>;

/// Return {} and []. Members begin as these: the inline ones of the library would be compiled in every
/// source.
Json json_object();
Json json_array();

/// Returns text with sorted keys and shortest round-trip numbers (2.0 as 2), for hashes, comparisons across
/// ranks and files. Throws Error (kRecipe) on text that is not UTF-8 and on numbers that are not finite.
std::string canonical_json(const Json& json);

/// Parses JSON with depth <= 64 and no duplicate keys. Throws Error (kUnusable) "[place] ... at byte N".
Json parse_json(std::string_view text, std::string_view place);

}  // namespace tycho

#endif  // TYCHO_BASE_JSON_H
