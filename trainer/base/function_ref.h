// A function of a recipe as a config sees it: its place in the file and its kind, not the code.
#pragma once
#include <string>

#include "trainer/base/json.h"

namespace tycho {

/// In JSON: {"at": "recipes/x.lua:31", "hash": "<32 hex digits>"}.
struct FunctionRef {
  std::string at;  // file:line, for people
  std::string
      hash;  // hash of its text and of the values it closes over; functions with equal hashes are equal
  bool operator==(const FunctionRef& other) const { return hash == other.hash; }
};

/// Returns true for the JSON of a FunctionRef.
inline bool is_function_ref(const Json& json) {
  return json.is_object() && json.size() == 2 && json.contains("at") && json.contains("hash");
}

/// Returns the value without the `at` of every function, since that changes when a line is added above it.
inline Json without_places(const Json& json) {
  if (is_function_ref(json)) return {{"hash", json.at("hash")}};
  if (!json.is_structured()) return json;
  Json out = json;
  for (auto& value : out) value = without_places(value);
  return out;
}

}  // namespace tycho
