// Operators on values, as in Python. All throw Error for operands of unsupported types.
#pragma once
#include <string_view>

#include "trainer/data/templates/rendering.h"
#include "trainer/data/templates/value.h"

namespace tycho::jinja {

/// Computes "+", "-", "*", "/", "//" or "%".
Value arithmetic(std::string_view op, const Value& a, const Value& b, Rendering& rendering);
/// Evaluates "==", "!=", "<", "<=", ">", ">=", "in" or "not in".
bool compares(std::string_view op, const Value& a, const Value& b, Rendering& rendering);
/// Evaluates Python's `needle in heap`.
bool contains(const Value& heap, const Value& needle, Rendering& rendering);
/// Returns value[key], or undefined. Namespaces and loops have no keys.
Value subscript(const Value& value, const Value& key, Rendering& rendering);
/// Returns value[first:end:step]; a bound of none is left out.
Value slice(const Value& value, const Value& first, const Value& end, const Value& step,
            Rendering& rendering);

}  // namespace tycho::jinja
