// The methods of texts and dicts.
#pragma once
#include <string_view>

#include "trainer/data/templates/arguments.h"
#include "trainer/data/templates/rendering.h"
#include "trainer/data/templates/value.h"

namespace tycho::jinja {

/// True if Python's type of `value` has a method of this name that templates may call.
bool has_method(const Value& value, std::string_view name);
/// Calls a method of `value`. Throws Error for methods that do not exist or are not supported.
Value call_method(const Value& value, std::string_view name, const Arguments& arguments,
                  Rendering& rendering);

}  // namespace tycho::jinja
