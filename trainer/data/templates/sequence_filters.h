// Filters that walk a sequence.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "trainer/data/templates/arguments.h"
#include "trainer/data/templates/rendering.h"
#include "trainer/data/templates/value.h"

namespace tycho::jinja {

using Filter = Value (*)(const Value& value, const Arguments& arguments, Rendering& rendering);
using Filters = std::map<std::string, Filter, std::less<>>;

/// Maps names to filters: first, join, map, selectattr…
const Filters& sequence_filters();

}  // namespace tycho::jinja
