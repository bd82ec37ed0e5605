// A schema of schema.h as JSON Schema (draft 2020-12, json-schema.org), for editors and other tools.
// Torch-free.
#pragma once
#include <string>

#include "trainer/base/json.h"

namespace tycho {

/// Converts a description of a struct. It accepts what a reader of the struct accepts value by value: names,
/// types, ranges, units, the keys of every kind of a component. Rules between values are not in it, and of a
/// duration or a size only its form and its sign.
Json json_schema(const Json& description, const std::string& title);

}  // namespace tycho
