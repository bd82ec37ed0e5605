// Parses the statements of a template.
#pragma once
#include <string_view>
#include <vector>

#include "trainer/data/templates/rendering.h"
#include "trainer/data/templates/syntax.h"

namespace tycho::jinja {

/// Parses a template. Throws Error (kUnusable) with the line of what is wrong or not supported.
std::vector<Statement> parse_template(std::string_view source, Rendering& rendering);

}  // namespace tycho::jinja
