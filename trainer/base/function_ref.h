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
bool is_function_ref(const Json& json);

}  // namespace tycho
