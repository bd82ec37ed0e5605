// Jinja's filters, in the subset that chat templates use.
#pragma once
#include <string_view>

#include "trainer/data/templates/arguments.h"
#include "trainer/data/templates/rendering.h"
#include "trainer/data/templates/value.h"

namespace tycho::jinja {

/// Evaluates `value | name(arguments)`. Throws Error for filters that are not supported.
Value apply_filter(std::string_view name, const Value& value, const Arguments& arguments,
                   Rendering& rendering);

}  // namespace tycho::jinja
