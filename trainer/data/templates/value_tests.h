// Jinja's tests, the words after "is".
#pragma once
#include <string_view>

#include "trainer/data/templates/arguments.h"
#include "trainer/data/templates/rendering.h"
#include "trainer/data/templates/value.h"

namespace tycho::jinja {

/// Evaluates `value is name(arguments)`. Throws Error for tests that are not supported.
bool apply_test(std::string_view name, const Value& value, const Arguments& arguments, Rendering& rendering);

}  // namespace tycho::jinja
